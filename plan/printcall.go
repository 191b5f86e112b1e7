package plan

import (
	"time"

	"github.com/stonelayer/stone/call"
)

// This file prints the calls of a plan.

func (w *printer) spec(n *node) {
	s := &n.spec
	w.field("intent", s.Intent)
	w.field("cap/id", s.Cap)
	if n.pin != nil {
		w.key("cap/id")
		w.slot(n.pin)
	}
	if n.op == "tool" {
		w.field("tool/id", s.Tool)
	}
	if n.context != nil {
		w.key("context")
		w.template(n.context, false)
	}
	if n.constraints != nil {
		w.key("constraints")
		w.template(n.constraints, false)
	}
	if n.op == "apply" {
		w.inner("output", func() { w.field("schema", s.Requires.OutSchema) })
	} else {
		w.inner("requires", func() { w.requires(&s.Requires) })
	}
	w.inner("dispatch", func() { w.dispatch(n) })
	w.inner("admit", func() { w.done(&s.Admit) })
	w.inner("done", func() { w.done(&s.Done) })
	w.inner("budget", func() {
		bound(w, "max-roundtrips", s.Budget.Roundtrips, 1)
		bound(w, "max-tokens", s.Budget.Tokens, 1)
		bound(w, "max-usd", s.Budget.USD, 1)
		bound(w, "latency-ms", s.Budget.Latency, 1e6)
	})
	w.inner("cache", func() { bound(w, "max-age-ms", s.Cache.MaxAge, 1e6) })
	w.inner("effects", func() { w.names("allowed", s.Effects, false) })
}

func (w *printer) done(d *call.Done) {
	w.names("must", d.Must, false)
	w.names("should", d.Should, false)
	if d.ScoreMin != nil {
		w.key("score-min")
		w.number(*d.ScoreMin)
	}
}

func (w *printer) requires(r *call.Requires) {
	w.field("reply", r.Reply)
	w.field("in-schema", r.InSchema)
	w.field("out-schema", r.OutSchema)
	w.field("cap/kind", r.Kind)
	w.names("cap/tags", r.Tags, false)
}

// limit writes a field with a limit. It writes a negative limit as 0, which means that nothing may be spent.
func (w *printer) limit(key string, n float64) {
	if n != 0 {
		w.key(key)
		w.number(n)
	}
}

func bound[N int | float64 | time.Duration](w *printer, key string, n *N, unit float64) {
	if n != nil {
		w.key(key)
		w.number(float64(*n) / unit)
	}
}

func (w *printer) dispatch(n *node) {
	d := &n.spec.Dispatch
	w.names("candidates", d.Candidates, d.Candidates != nil)
	if n.candidates != nil {
		w.key("candidates")
		w.open('[')
		for _, h := range n.candidates {
			w.next()
			if h.slot != nil {
				w.slot(h.slot)
			} else {
				w.name(h.name)
			}
		}
		w.close(']')
	}
	if d.Strategy != call.Cascade {
		w.field("strategy", d.Strategy)
	}
	w.limit("hedge-ms", float64(d.Hedge)/1e6)
	if a := d.Agree; a != nil {
		w.inner("agree", func() {
			w.limit("first", float64(a.First))
			w.field("check", a.Check)
		})
	}
	if d.AllowFailure {
		w.key("allow-failure?")
		w.bool(true)
	}
	w.field("policy", d.Policy)
	w.names("switch-on", d.SwitchOn, d.SwitchOn != nil)
	w.inner("retry", func() {
		w.count("same-cap-max", d.Retry.SameCapMax)
		w.count("fallback-max", d.Retry.FallbackMax)
	})
	if r := d.Repair; r != nil {
		w.inner("repair", func() {
			w.field("cap/id", r.Cap)
			w.count("max", &r.Max)
		})
	}
}

func (w *printer) count(key string, n *int) {
	if n != nil {
		w.key(key)
		w.int(*n)
	}
}
