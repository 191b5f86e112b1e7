package call

import (
	"math"
	"slices"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/grants"
)

// counted is the largest number of attempts, fallbacks or invocations that plans, requests and policies may set.
const counted = 1_000_000

// readParts reads parts of a call from the fields of the same names: "requires", "dispatch", "done", "admit", "budget" and
// "effects". Nodes of plans, requests and policies have these fields in common.
func readParts(m *form.Map, to *Spec, parts ...string) {
	for _, part := range parts {
		switch part {
		case "requires":
			m.At(part).Map(to.Requires.read)
		case "dispatch":
			m.At(part).Map(to.Dispatch.read)
		case "dispatch/slots": // the candidates may be slots, which the plan's reader resolves
			m.At("dispatch").Map(func(m *form.Map) {
				m.Field("candidates")
				to.Dispatch.readRest(m)
			})
		case "done":
			m.At(part).Map(to.Done.read)
		case "admit":
			m.At(part).Map(to.Admit.read)
		case "cache":
			m.At(part).Map(to.Cache.read)
		case "budget":
			m.At(part).Map(func(m *form.Map) { readBudget(m, &to.Budget) })
		case "effects":
			if v, ok := m.Field(part); ok && v.EDN().Kind() != edn.KindMap {
				v.Fault(form.Invalid, "expected a map of the allowed effects, as {:allowed #{:net/http}}, found a %s", v.EDN().Kind())
				continue
			}
			m.At(part).Map(func(m *form.Map) {
				m.Need("allowed")
				readEffects(m, "allowed", &to.Effects)
			})
		}
	}
}

func (r *Requires) read(m *form.Map) {
	m.At("reply").OneOf(&r.Reply, Value, Plan)
	m.At("in-schema").Name(&r.InSchema)
	m.At("out-schema").Name(&r.OutSchema)
	m.At("cap/kind").Name(&r.Kind)
	m.At("cap/tags").NameSet(&r.Tags)
}

func (d *Dispatch) read(m *form.Map) {
	m.At("candidates").NameList(&d.Candidates)
	d.readRest(m)
}

// readRest reads everything but the candidates.
func (d *Dispatch) readRest(m *form.Map) {
	m.At("strategy").OneOf(&d.Strategy, Cascade, Tournament, Race, Agreement)
	m.At("hedge-ms").Duration(&d.Hedge)
	m.At("agree").Map(func(m *form.Map) {
		d.Agree = new(Agree)
		m.At("first").Int(&d.Agree.First, 2, counted)
		m.At("check").Name(&d.Agree.Check)
	})
	m.At("allow-failure?").Bool(&d.AllowFailure)
	m.At("repair").Map(func(m *form.Map) {
		repair := Repair{Max: 1}
		m.At("cap/id").Name(&repair.Cap)
		m.At("max").Int(&repair.Max, 0, counted)
		if repair.Max > 0 {
			d.Repair = &repair
		}
	})
	m.At("retry").Map(d.Retry.read)
	m.At("switch-on").NameSet(&d.SwitchOn)
	m.At("policy").Name(&d.Policy)
}

func (r *Retry) read(m *form.Map) {
	form.Ptr(&r.SameCapMax, func(to *int) bool { return m.At("same-cap-max").Int(to, 0, counted) })
	form.Ptr(&r.FallbackMax, func(to *int) bool { return m.At("fallback-max").Int(to, 0, counted) })
}

func (d *Done) read(m *form.Map) {
	m.At("must").NameSet(&d.Must)
	m.At("should").NameSet(&d.Should)
	form.Ptr(&d.ScoreMin, func(to *float64) bool { return m.At("score-min").Float(to, 0, 1) })
}

// readBudget reads limits.
func readBudget(m *form.Map, to *Budget) {
	form.Ptr(&to.Roundtrips, func(to *int) bool { return m.At("max-roundtrips").Int(to, 0, math.MaxInt) })
	form.Ptr(&to.Tokens, func(to *int) bool { return m.At("max-tokens").Int(to, 0, math.MaxInt) })
	form.Ptr(&to.USD, func(to *float64) bool { return m.At("max-usd").Float(to, 0, math.Inf(1)) })
	form.Ptr(&to.Latency, m.At("latency-ms").Duration)
}

// readEffects reads a set of effects and drops "none". A stated set is never nil, because nil means that no effects are stated.
func readEffects(m *form.Map, key string, to *[]string) {
	if m.At(key).NameSet(to) {
		*to = withoutNone(append([]string{}, *to...))
	}
}

// checkEffects reports the unknown effects of a field.
func checkEffects(m *form.Map, key string) {
	v, ok := m.Field(key)
	if !ok {
		return
	}
	for _, e := range v.EDN().Elements() {
		if name, ok := e.Name(); ok && grants.Check(name) != nil {
			v.Unknown("effect", name, grants.Known()...)
		}
	}
}

func withoutNone(effects []string) []string {
	return slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return e == effect.None })
}
