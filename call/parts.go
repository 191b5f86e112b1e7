package call

import (
	"math"
	"slices"
	"time"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

// counted is the largest number of attempts, fallbacks or invocations that data may set.
const counted = 1_000_000

// readParts reads parts of a call from the fields of the same names: "requires",
// "dispatch", "done", "admit", "budget" and "effects". Nodes of plans, requests and policies share
// them.
func readParts(m *form.Map, to *Spec, parts ...string) {
	for _, part := range parts {
		switch part {
		case "requires":
			m.Map(part, to.Requires.read)
		case "dispatch":
			m.Map(part, to.Dispatch.read)
		case "dispatch/slots": // its candidates may be slots, which the reader of a plan reads
			m.Map("dispatch", func(m *form.Map) {
				m.Field("candidates")
				to.Dispatch.readRest(m)
			})
		case "done":
			m.Map(part, to.Done.read)
		case "admit":
			m.Map(part, to.Admit.read)
		case "cache":
			m.Map(part, to.Cache.read)
		case "budget":
			m.Map(part, func(m *form.Map) { readBudget(m, &to.Budget) })
		case "effects":
			if v, ok := m.Field(part); ok && v.EDN().Kind() != edn.KindMap {
				v.Fault(form.Invalid, "expected a map of the allowed effects, as {:allowed #{:net/http}}, found a %s", v.EDN().Kind())
				continue
			}
			m.Map(part, func(m *form.Map) {
				m.Need("allowed")
				readEffects(m, "allowed", &to.Effects)
			})
		}
	}
}

func (r *Requires) read(m *form.Map) {
	m.OneOf("reply", &r.Reply, Value, Plan)
	m.Name("in-schema", &r.InSchema)
	m.Name("out-schema", &r.OutSchema)
	m.Name("cap/kind", &r.Kind)
	m.NameSet("cap/tags", &r.Tags)
}

func (d *Dispatch) read(m *form.Map) {
	m.NameList("candidates", &d.Candidates)
	d.readRest(m)
}

// readRest reads everything but the candidates.
func (d *Dispatch) readRest(m *form.Map) {
	m.OneOf("strategy", &d.Strategy, Cascade, Tournament, Race, Agreement)
	m.Duration("hedge-ms", &d.Hedge)
	m.Map("agree", func(m *form.Map) {
		d.Agree = new(Agree)
		m.Int("first", &d.Agree.First, 2, counted)
		m.Name("check", &d.Agree.Check)
	})
	m.Bool("allow-failure?", &d.AllowFailure)
	m.Map("repair", func(m *form.Map) {
		repair := Repair{Max: 1}
		m.Name("cap/id", &repair.Cap)
		m.Int("max", &repair.Max, 0, counted)
		if repair.Max > 0 {
			d.Repair = &repair
		}
	})
	m.Map("retry", d.Retry.read)
	m.NameSet("switch-on", &d.SwitchOn)
	m.Name("policy", &d.Policy)
}

func (r *Retry) read(m *form.Map) {
	form.Ptr(&r.SameCapMax, func(to *int) bool { return m.Int("same-cap-max", to, 0, counted) })
	form.Ptr(&r.FallbackMax, func(to *int) bool { return m.Int("fallback-max", to, 0, counted) })
}

func (d *Done) read(m *form.Map) {
	m.NameSet("must", &d.Must)
	m.NameSet("should", &d.Should)
	form.Ptr(&d.ScoreMin, func(to *float64) bool { return m.Float("score-min", to, 0, 1) })
}

// readBudget reads limits. An explicit 0 allows no spending.
func readBudget(m *form.Map, to *Budget) {
	zeroIsNone(m.Int("max-roundtrips", &to.Roundtrips, 0, math.MaxInt), &to.Roundtrips)
	zeroIsNone(m.Int("max-tokens", &to.Tokens, 0, math.MaxInt), &to.Tokens)
	zeroIsNone(m.Float("max-usd", &to.USD, 0, math.Inf(1)), &to.USD)
	zeroIsNone(m.Duration("latency-ms", &to.Latency), &to.Latency)
}

// zeroIsNone maps an explicit 0 to -1, because zero means unlimited.
func zeroIsNone[N int | float64 | time.Duration](stated bool, to *N) {
	if stated && *to == 0 {
		*to = -1
	}
}

// readEffects reads a set of effects and drops "none". A set that is stated is never nil,
// because nil means not stated.
func readEffects(m *form.Map, key string, to *[]string) {
	if m.NameSet(key, to) {
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
		if name, ok := e.Name(); ok && effect.Check(name) != nil {
			v.Unknown("effect", name, effect.Known()...)
		}
	}
}

func withoutNone(effects []string) []string {
	return slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return e == effect.None })
}
