package plan

import (
	"math"
	"strconv"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
)

// A printer writes a parsed plan as canonical text: with the fields in a fixed order, and without fields that have their default
// value.
type printer struct {
	text []byte
	json bool
	err  error
}

// print returns the plan as JSON if json is true, and otherwise as EDN. The argument size is the expected length of the text in
// bytes.
func (p *Plan) print(json bool, size int) ([]byte, error) {
	w := &printer{json: json, text: make([]byte, 0, size)}
	w.open('{')
	if p.id != "" {
		w.key("id")
		w.string(p.id)
	}
	if p.stated {
		inputs := p.inputs
		w.key("inputs")
		w.open('{')
		for _, in := range inputs {
			w.key(in.name)
			w.template(in.of, false)
		}
		w.close('}')
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

// next writes the separator before an element or a key, unless it is the first one.
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

// key writes the key of a field.
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

// name writes a name, which must be valid.
func (w *printer) name(name string) {
	if w.json {
		w.string(name)
	} else {
		w.text = append(append(w.text, ':'), name...)
	}
}

// word writes a string. In EDN it writes a keyword if possible.
func (w *printer) word(text string) {
	if isSlotKey(text) { // a key of data that would be read as a slot in JSON
		w.fail(errSlot, w.json)
	}
	if w.json || !isKeyword(text) || isSlotKey(text) || text == celKey {
		w.string(text)
	} else {
		w.name(text)
	}
}

func isKeyword(name string) bool {
	_, err := edn.Keyword(name)
	return err == nil
}

// string writes a string. JSON escapes are valid in EDN.
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

// field writes a field whose value is a name, unless the name is empty.
func (w *printer) field(key, name string) {
	if name != "" {
		w.key(key)
		w.name(name)
	}
}

// names writes a field whose value is a list of names. It omits an empty list unless kept is set.
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

// inner writes a field whose value is a map. The function fill writes the content. If it writes none, the field is omitted.
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
	if n.loss.all {
		w.key("all")
		w.bool(true)
	}
	if n.loss.quorum > 0 {
		w.key("quorum")
		w.int(n.loss.quorum)
	}
	if n.loss.allowEmpty {
		w.key("allow-empty")
		w.bool(true)
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

// valueKey returns the name of the field that contains the template of a node with the given op.
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

// template writes a template. The argument words is true if the template is the whole value of an emit's field.
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
	case t.formula != "":
		w.open('{')
		w.key(celKey)
		w.string(t.formula)
		w.close('}')
	case t.text:
		w.open('{')
		w.key(slotText)
		w.open('[')
		for _, item := range t.items {
			w.next()
			w.template(item, false)
		}
		w.close(']')
		w.close('}')
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
