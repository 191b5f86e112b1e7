package plan

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
)

// printer writes a typed plan back as data, in one form only.
type printer struct {
	json bool // for JSON, where keywords in emits need their colon
	err  error
}

func (p *Plan) print(json bool) (edn.Value, error) {
	w := &printer{json: json}
	m := &mapping{w: w}
	if p.id != "" {
		m.put("id", edn.String(p.id))
	}
	m.put("nodes", w.nodes(p.nodes))
	return m.value(), w.err
}

// mapping is a map that is being made. What goes without saying is left out.
type mapping struct {
	w     *printer
	items []edn.Value
}

func (m *mapping) put(key string, v edn.Value) {
	m.items = append(m.items, m.w.key(key), v)
}

func (m *mapping) value() edn.Value {
	v, err := edn.Map(m.items...)
	if err != nil && m.w.err == nil {
		m.w.err = err
	}
	return v
}

func (m *mapping) name(key, name string) {
	if name != "" {
		m.put(key, m.w.name(name))
	}
}

func (m *mapping) names(key string, names []string, kept bool) {
	if len(names) == 0 && !kept {
		return
	}
	items := make([]edn.Value, len(names))
	for i, name := range names {
		items[i] = m.w.name(name)
	}
	m.put(key, edn.Vector(items...))
}

func (m *mapping) int(key string, n int) {
	if n != 0 {
		m.put(key, edn.Int(int64(n)))
	}
}

func (m *mapping) float(key string, f *float64) {
	if f != nil {
		m.put(key, edn.Float(*f))
	}
}

// limit writes a bound, of which a negative one leaves nothing to spend.
func (m *mapping) limit(key string, n float64) {
	switch {
	case n < 0:
		m.put(key, edn.Int(0))
	case n > 0 && n == math.Trunc(n) && n < 1<<53:
		m.put(key, edn.Int(int64(n)))
	case n > 0:
		m.put(key, edn.Float(n))
	}
}

func (m *mapping) template(key string, t *template) {
	if t != nil {
		m.put(key, m.w.template(t))
	}
}

func (m *mapping) guard(key string, g *guard) {
	if g != nil {
		m.put(key, m.w.guard(g))
	}
}

// inner puts a map, if there is anything in it.
func (m *mapping) inner(key string, fill func(*mapping)) {
	in := &mapping{w: m.w}
	fill(in)
	if len(in.items) > 0 {
		m.put(key, in.value())
	}
}

// key is what stands for a field, in a map of fields or of data.
func (w *printer) key(name string) edn.Value {
	if !w.json {
		if k, err := edn.Keyword(name); err == nil {
			return k
		}
	}
	return edn.String(name)
}

// name was read as one.
func (w *printer) name(name string) edn.Value { return w.key(name) }

func (w *printer) nodes(nodes []*node) edn.Value {
	items := make([]edn.Value, len(nodes))
	for i, n := range nodes {
		items[i] = w.node(n)
	}
	return edn.Vector(items...)
}

func (w *printer) node(n *node) edn.Value {
	m := &mapping{w: w}
	m.name("op", n.op)
	if n.id != "" {
		m.put("id", edn.String(n.id))
	}
	m.guard("when", n.when)
	m.name("as", n.as)
	switch n.op {
	case "let":
		m.template("value", n.value)
	case "call", "tool":
		m.template("input", n.value)
		m.spec(n)
	case "emit":
		m.put("input", w.within(n.value, true))
	case "loop":
		m.guard("until", n.until)
		m.int("max", n.max)
	case "match":
		m.template("on", n.value)
		m.inner("branches", func(m *mapping) {
			for _, b := range n.bodies {
				m.items = append(m.items, edn.String(b.key), w.nodes(b.nodes))
			}
		})
	case "map":
		m.template("over", n.value)
	case "parallel":
		lanes := make([]edn.Value, len(n.bodies))
		for i, b := range n.bodies {
			lanes[i] = w.nodes(b.nodes)
		}
		m.put("lanes", edn.Vector(lanes...))
	case "ask":
		m.template("question", n.value)
		if n.choices != nil {
			choices := make([]edn.Value, len(n.choices))
			for i, c := range n.choices {
				choices[i] = edn.String(c)
			}
			m.put("choices", edn.Vector(choices...))
		}
	}
	switch n.op {
	case "seq", "loop", "map", "reduce":
		for _, b := range n.bodies {
			m.put("body", w.nodes(b.nodes))
		}
	}
	return m.value()
}

func (m *mapping) spec(n *node) {
	s := &n.spec
	m.name("intent", s.Intent)
	m.name("cap/id", s.Cap)
	m.name("tool/id", s.Tool)
	m.template("context", n.context)
	m.template("constraints", n.constraints)
	m.inner("requires", func(m *mapping) {
		m.name("reply", s.Requires.Reply)
		m.name("in-schema", s.Requires.InSchema)
		m.name("out-schema", s.Requires.OutSchema)
		m.name("cap/kind", s.Requires.Kind)
		m.names("cap/tags", s.Requires.Tags, false)
	})
	m.inner("dispatch", func(m *mapping) { m.dispatch(&s.Dispatch) })
	m.inner("done", func(m *mapping) {
		m.names("must", s.Done.Must, false)
		m.names("should", s.Done.Should, false)
		m.float("score-min", s.Done.ScoreMin)
	})
	m.inner("budget", func(m *mapping) {
		m.limit("max-roundtrips", float64(s.Budget.Roundtrips))
		m.limit("max-tokens", float64(s.Budget.Tokens))
		m.limit("max-usd", s.Budget.USD)
		m.limit("latency-ms", s.Budget.Latency.Seconds()*1000)
	})
	if len(s.Effects) > 0 {
		m.inner("effects", func(m *mapping) { m.names("allowed", s.Effects, false) })
	}
}

func (m *mapping) dispatch(d *call.Dispatch) {
	m.names("candidates", d.Candidates, d.Candidates != nil)
	if d.Strategy != call.Cascade {
		m.name("strategy", d.Strategy)
	}
	m.int("hedge-ms", int(d.Hedge.Milliseconds()))
	if d.AllowFailure {
		m.put("allow-failure?", edn.Bool(true))
	}
	m.name("policy", d.Policy)
	m.names("switch-on", d.SwitchOn, d.SwitchOn != nil)
	m.inner("retry", func(m *mapping) {
		if n := d.Retry.SameCapMax; n != nil {
			m.put("same-cap-max", edn.Int(int64(*n)))
		}
		if n := d.Retry.FallbackMax; n != nil {
			m.put("fallback-max", edn.Int(int64(*n)))
		}
	})
	if r := d.Repair; r != nil {
		m.inner("repair", func(m *mapping) {
			m.name("cap/id", r.Cap)
			m.int("max", r.Max)
		})
	}
}

func (w *printer) guard(g *guard) edn.Value {
	switch g.form {
	case always, never:
		return edn.Bool(g.form == always)
	case expression:
		return edn.String(g.text)
	}
	m := &mapping{w: w}
	m.name(map[guardForm]string{present: isPresent, failed: isFailed}[g.form], g.name)
	return m.value()
}

func (w *printer) template(t *template) edn.Value { return w.within(t, false) }

// within writes a template; field is whether it is the whole value of a field of
// an emit.
func (w *printer) within(t *template, field bool) edn.Value {
	switch {
	case t.constant != nil:
		return w.constant(t.constant, field)
	case t.slot != nil:
		return w.slot(t.slot)
	case t.word != "":
		if w.json {
			return edn.String(":" + t.word)
		}
		return w.name(t.word)
	case t.items != nil:
		items := make([]edn.Value, len(t.items))
		for i, item := range t.items {
			items[i] = w.within(item, false)
		}
		return edn.Vector(items...)
	}
	m := &mapping{w: w}
	for _, f := range t.fields {
		m.items = append(m.items, w.key(f.name), w.within(f.value, field))
	}
	return m.value()
}

func (w *printer) constant(raw json.RawMessage, field bool) edn.Value {
	v, err := edn.FromJSON(raw, edn.Limits{})
	if err != nil && w.err == nil {
		w.err = err
	}
	return w.keyed(v, field)
}

// keyed makes keywords of the keys of data, as far as they can be.
func (w *printer) keyed(v edn.Value, field bool) edn.Value {
	switch v.Kind() {
	case edn.KindMap:
		m := &mapping{w: w}
		for k, e := range v.Entries() {
			m.items = append(m.items, w.key(k.Text()), w.keyed(e, field))
		}
		return m.value()
	case edn.KindVector:
		items := make([]edn.Value, 0, v.Len())
		for _, e := range v.Elements() {
			items = append(items, w.keyed(e, false))
		}
		return edn.Vector(items...)
	case edn.KindString:
		if w.json && field && strings.HasPrefix(v.Text(), ":") && w.err == nil {
			if _, err := edn.Keyword(v.Text()[1:]); err == nil {
				w.err = errColon
			}
		}
		return edn.String(v.Text())
	}
	return v
}

func (w *printer) slot(r *slotRef) edn.Value {
	m := &mapping{w: w}
	key := slotID
	if r.record {
		key = slotRecord
	}
	if len(r.path) == 0 {
		m.name(key, r.name)
		return m.value()
	}
	items := []edn.Value{w.name(r.name)}
	for _, s := range r.path {
		if s.element {
			items = append(items, edn.Int(int64(s.index)))
		} else {
			items = append(items, w.key(s.field))
		}
	}
	m.put(key, edn.Vector(items...))
	return m.value()
}
