package plan

import (
	"math"
	"strconv"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
)

// A printer writes a typed plan as canonical text: without defaults, and with fields in a
// fixed order.
type printer struct {
	text []byte
	json bool
	err  error
}

// print writes the plan in one of the notations. Size is a hint, in bytes.
func (p *Plan) print(json bool, size int) ([]byte, error) {
	w := &printer{json: json, text: make([]byte, 0, size)}
	w.open('{')
	if p.id != "" {
		w.key("id")
		w.string(p.id)
	}
	w.key("nodes")
	w.nodes(p.nodes)
	w.close('}')
	return w.text, w.err
}

func (w *printer) fail(err error, really bool) {
	if w.err == nil && really {
		w.err = err
	}
}

func (w *printer) open(c byte) { w.text = append(w.text, c) }

func (w *printer) close(c byte) { w.text = append(w.text, c) }

// next separates elements and keys. It writes nothing before the first.
func (w *printer) next() {
	switch w.text[len(w.text)-1] {
	case '{', '[':
		return
	}
	if w.json {
		w.text = append(w.text, ',')
	} else {
		w.text = append(w.text, ' ')
	}
}

// key starts a field of a node.
func (w *printer) key(name string) {
	w.next()
	w.name(name)
	w.colon()
}

func (w *printer) colon() {
	if w.json {
		w.text = append(w.text, ':')
	} else {
		w.text = append(w.text, ' ')
	}
}

// name writes a valid name.
func (w *printer) name(name string) {
	if w.json {
		w.string(name)
	} else {
		w.text = append(append(w.text, ':'), name...)
	}
}

// word writes a text, in EDN as a keyword if possible.
func (w *printer) word(text string) {
	if isSlotKey(text) { // a key of data
		w.fail(errSlot, w.json)
	}
	if w.json || !isKeyword(text) || isSlotKey(text) {
		w.string(text)
	} else {
		w.name(text)
	}
}

func isKeyword(name string) bool {
	_, err := edn.Keyword(name)
	return err == nil
}

// string writes a text. JSON escapes are valid in EDN.
func (w *printer) string(s string) {
	text, err := canon.Append(w.text, s)
	w.fail(err, err != nil)
	w.text = text
}

func (w *printer) bool(b bool) { w.text = strconv.AppendBool(w.text, b) }

func (w *printer) int(n int) { w.text = strconv.AppendInt(w.text, int64(n), 10) }

func (w *printer) number(f float64) {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		w.int(int(f))
		return
	}
	w.text = strconv.AppendFloat(w.text, f, 'g', -1, 64)
}

func (w *printer) nodes(nodes []*node) {
	w.open('[')
	for _, n := range nodes {
		w.next()
		w.node(n)
	}
	w.close(']')
}

// field writes a name, unless it is empty.
func (w *printer) field(key, name string) {
	if name != "" {
		w.key(key)
		w.name(name)
	}
}

// names writes a list of names. It omits an empty list, unless kept is set.
func (w *printer) names(key string, names []string, kept bool) {
	if len(names) == 0 && !kept {
		return
	}
	w.key(key)
	w.open('[')
	for _, name := range names {
		w.next()
		w.name(name)
	}
	w.close(']')
}

// inner writes a map, unless it is empty.
func (w *printer) inner(key string, fill func()) {
	before := len(w.text)
	w.key(key)
	w.open('{')
	start := len(w.text)
	if fill(); len(w.text) == start {
		w.text = w.text[:before]
		return
	}
	w.close('}')
}

func (w *printer) node(n *node) {
	w.open('{')
	w.field("op", n.op)
	if n.id != "" {
		w.key("id")
		w.string(n.id)
	}
	w.field("as", n.as)
	w.guard("when", n.when)
	if n.value != nil {
		w.key(valueKey(n.op))
		w.template(n.value, n.op == "emit")
	}
	if n.program != nil {
		w.key("plan")
		w.slot(n.program)
	}
	if n.asks() {
		w.spec(n)
	}
	w.guard("until", n.until)
	if n.max != 0 {
		w.key("max")
		w.int(n.max)
	}
	if n.choices != nil {
		w.key("choices")
		w.open('[')
		for _, c := range n.choices {
			w.next()
			w.string(c)
		}
		w.close(']')
	}
	w.bodies(n)
	w.close('}')
}

// valueKey returns the field that contains the template of a node.
func valueKey(op string) string {
	switch op {
	case "let":
		return "value"
	case "match":
		return "on"
	case "map":
		return "over"
	case "ask":
		return "question"
	}
	return "input"
}

func (w *printer) bodies(n *node) {
	switch n.op {
	case "seq", "loop", "map", "reduce":
		w.key("body")
		w.nodes(bodyOf(n))
	case "parallel":
		w.key("lanes")
		w.open('[')
		for _, b := range n.bodies {
			w.next()
			w.nodes(b.nodes)
		}
		w.close(']')
	case "match":
		w.key("branches")
		w.open('{')
		for _, b := range n.bodies {
			w.next()
			w.string(b.key)
			w.colon()
			w.nodes(b.nodes)
		}
		w.close('}')
	}
}

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
	w.inner("done", func() {
		w.names("must", s.Done.Must, false)
		w.names("should", s.Done.Should, false)
		if s.Done.ScoreMin != nil {
			w.key("score-min")
			w.number(*s.Done.ScoreMin)
		}
	})
	w.inner("budget", func() {
		w.limit("max-roundtrips", float64(s.Budget.Roundtrips))
		w.limit("max-tokens", float64(s.Budget.Tokens))
		w.limit("max-usd", s.Budget.USD)
		w.limit("latency-ms", float64(s.Budget.Latency)/1e6)
	})
	w.inner("cache", func() { w.limit("max-age-ms", float64(s.Cache.MaxAge)/1e6) })
	w.inner("effects", func() { w.names("allowed", s.Effects, false) })
}

func (w *printer) requires(r *call.Requires) {
	w.field("reply", r.Reply)
	w.field("in-schema", r.InSchema)
	w.field("out-schema", r.OutSchema)
	w.field("cap/kind", r.Kind)
	w.names("cap/tags", r.Tags, false)
}

// limit writes a bound. A negative one is written as 0, which allows no spending.
func (w *printer) limit(key string, n float64) {
	if n != 0 {
		w.key(key)
		w.number(max(n, 0))
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

func (w *printer) guard(key string, g *guard) {
	if g == nil {
		return
	}
	w.key(key)
	switch g.form {
	case always, never:
		w.bool(g.form == always)
	case expression:
		w.string(g.text)
	case present:
		w.open('{')
		w.field(isPresent, g.name)
		w.close('}')
	case failed:
		w.open('{')
		w.field(isFailed, g.name)
		w.close('}')
	}
}

// template writes a template; words means that it is the whole value of a field of an
// emit.
func (w *printer) template(t *template, words bool) {
	switch {
	case t.constant != nil:
		w.constant(t, words)
	case t.slot != nil:
		w.slot(t.slot)
	case t.word != "" && w.json:
		w.string(":" + t.word)
	case t.word != "":
		w.name(t.word)
	case t.items != nil:
		w.open('[')
		for _, item := range t.items {
			w.next()
			w.template(item, false)
		}
		w.close(']')
	default:
		w.open('{')
		for _, f := range t.fields {
			w.next()
			w.word(f.name)
			w.colon()
			w.template(f.value, words)
		}
		w.close('}')
	}
}

func (w *printer) slot(r *slotRef) {
	w.open('{')
	if r.record {
		w.key(slotRecord)
	} else {
		w.key(slotID)
	}
	if len(r.path) == 0 {
		w.name(r.name)
	} else {
		w.open('[')
		w.name(r.name)
		for _, s := range r.path {
			w.next()
			if s.element {
				w.int(s.index)
			} else if isKeyword(s.field) {
				w.name(s.field)
			} else {
				w.string(s.field)
			}
		}
		w.close(']')
	}
	w.close('}')
}
