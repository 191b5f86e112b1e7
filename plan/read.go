package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/suggest"
)

// reading parses data as a plan, and collects findings about its form.
type reading struct {
	report
	size, depth int
	most        int // maximum number of nodes to read; further nodes are only counted
}

func (r *reading) plan(v edn.Value) *Plan {
	p := &Plan{}
	whole := &place{value: v}
	r.faults(form.Read(v, func(m *form.Map) {
		m.Need("nodes")
		(fields{Map: m}).name("id", &p.id)
		if inputs, ok := m.Field("inputs"); ok {
			p.stated, p.inputs = true, r.readInputs(whole.field("inputs", inputs.EDN()))
		}
		if nodes, ok := m.Field("nodes"); ok {
			p.nodes = r.sequence(whole.field("nodes", nodes.EDN()), 1)
		}
	}))
	p.size, p.depth = r.size, r.depth
	return p
}

// sequence reads a vector of nodes at the given place and nesting depth.
func (r *reading) sequence(at *place, depth int) []*node {
	r.depth = max(r.depth, depth)
	if !r.vector(at, "a vector of nodes") {
		return nil
	}
	var nodes []*node
	for i, v := range at.value.Elements() {
		r.size++
		if r.full() || r.size > r.most {
			continue
		}
		if n := r.node(at.item(i, v), depth); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (r *reading) vector(at *place, what string) bool {
	if kind := at.value.Kind(); kind != edn.KindVector {
		r.find(at, stone.Finding{Type: badValue}, "expected %s, found a %s", what, kind)
		return false
	}
	return true
}

// readerOf returns the function that reads the fields of an op's nodes, except op, id and when.
func readerOf(op string) func(*reading, *node, fields) {
	switch op {
	case "apply":
		return (*reading).readApply
	case "ask":
		return (*reading).readAsk
	case "call":
		return (*reading).readCall
	case "emit":
		return (*reading).readEmit
	case "let":
		return (*reading).readLet
	case "loop":
		return (*reading).readLoop
	case "map":
		return (*reading).readMap
	case "match":
		return (*reading).readMatch
	case "parallel":
		return (*reading).readParallel
	case "reduce", "seq":
		return (*reading).readBody
	case "tool":
		return (*reading).readTool
	}
	return nil
}

// fields are the fields of a node that is being read.
type fields struct {
	*form.Map
	at    *place
	depth int
}

// place returns the place of the field key, or nil if the field is not set.
func (f fields) place(key string) *place {
	v, ok := f.Field(key)
	if !ok {
		return nil
	}
	return f.at.field(key, v.EDN())
}

// node reads a node. If the op is unknown, the returned node has only its names.
func (r *reading) node(at *place, depth int) *node {
	n := &node{at: at}
	faults := form.Read(at.value, func(m *form.Map) {
		m.Need("op")
		m.At("op").Name(&n.op)
		f := fields{m, at, depth}
		f.name("id", &n.id)
		if at := f.place("when"); at != nil {
			n.when = r.guard(at)
		}
		if read := readerOf(n.op); read != nil {
			read(r, n, f)
			return
		}
		m.AllowRest()
		m.At("as").Name(&n.as)
		if n.op != "" {
			m.FaultAt("op", unknownOp, "unknown op %q; known are %s%s", n.op, strings.Join(ops, ", "), meant(n.op))
		}
	})
	for i := range faults {
		n.likened(&faults[i], at.value)
		faults[i].Path = at.path() + joined(faults[i].Path)
	}
	r.faults(faults)
	if at.value.Kind() != edn.KindMap {
		return nil
	}
	return n
}

func joined(path string) string {
	if path == "" {
		return ""
	}
	return "." + path
}

func meant(op string) string {
	if near := cmp.Or(suggest.Closest(op, slices.Values(ops)), likeOp(op)); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

// likened adds a suggestion to f if a name in the node is unknown in plans but known from other languages. The suggestion is the
// equivalent name in plans.
func (n *node) likened(f *form.Fault, v edn.Value) {
	has := func(key string) bool { _, ok := v.Field(key); return ok }
	switch o, known := opOf(n.op); {
	case f.Kind == form.UnknownKey && known:
		f.Suggestion = cmp.Or(likeKey(o, f.Path, has), f.Suggestion)
	case f.Kind == form.Missing && f.Path == "op":
		for k := range v.Entries() {
			name, _ := k.Name()
			if _, isOp := opOf(name); isOp {
				f.Message += "; write {:op :" + name + " …} for {:" + name + " …}"
				return
			}
			if slices.Contains(likeKeys["op"], name) {
				f.Message += "; it has " + strconv.Quote(name) + ", which is no field: write op for it"
				return
			}
		}
	}
}

// name reads the field key, which must be a name or a string, into *to.
func (f fields) name(key string, to *string) {
	if v, ok := f.Field(key); ok {
		if v.EDN().Kind() == edn.KindString && !v.EDN().IsJSON() {
			v.Text(to)
		} else {
			v.Name(to)
		}
	}
}

// field reads the field key as a template. It returns nil if the field is not set.
func (r *reading) field(f fields, key string, words bool) *template {
	v, ok := f.Field(key)
	if !ok {
		return nil
	}
	return r.template(place{up: f.at, key: key, value: v.EDN()}, words)
}

func (r *reading) readLet(n *node, f fields) {
	f.Need("value", "as")
	n.value = r.field(f, "value", false)
	f.At("as").Name(&n.as)
}

func (r *reading) readEmit(n *node, f fields) {
	f.Need("input")
	n.value = r.field(f, "input", true)
}

func (r *reading) readCall(n *node, f fields) {
	f.Need("intent")
	f.At("intent").Name(&n.spec.Intent)
	r.readHandles(n, f)
	n.value = r.field(f, "input", false)
	n.context = r.field(f, "context", false)
	n.constraints = r.field(f, "constraints", false)
	form.Into(f.Map, &n.spec, "requires")
	readOutput(f.Map, n)
	form.Into(f.Map, &n.spec, "dispatch/slots", "done", "admit", "budget", "cache", "effects")
	f.At("as").Name(&n.as)
}

func (r *reading) readTool(n *node, f fields) {
	f.Need("tool/id")
	f.At("tool/id").Name(&n.spec.Tool)
	n.value = r.field(f, "input", false)
	form.Into(f.Map, &n.spec, "dispatch", "done", "admit", "effects")
	f.At("as").Name(&n.as)
}

// readBody reads the body of a node.
func (r *reading) readBody(n *node, f fields) {
	f.Need("body")
	if at := f.place("body"); at != nil {
		n.bodies = []body{{at: at, nodes: r.sequence(at, f.depth+1)}}
	}
}

func (r *reading) readLoop(n *node, f fields) {
	r.readBody(n, f)
	if at := f.place("until"); at != nil {
		n.until = r.guard(at)
	} else {
		f.FaultAt("until", "missing-until", "a loop needs a condition: add until")
	}
	if _, ok := f.Field("max"); ok {
		f.At("max").Int(&n.max, 1, math.MaxInt32)
	} else {
		f.FaultAt("max", "missing-max", "a loop needs a bound: add max, at least 1")
	}
}

func (r *reading) readMap(n *node, f fields) {
	f.Need("over", "as")
	n.value = r.field(f, "over", false)
	f.At("as").Name(&n.as)
	n.loss.read(f)
	f.At("allow-empty").Bool(&n.loss.allowEmpty)
	r.readBody(n, f)
}

func (l *loss) read(f fields) {
	f.At("all").Bool(&l.all)
	f.At("quorum").Int(&l.quorum, 1, math.MaxInt32)
}

func (r *reading) readParallel(n *node, f fields) {
	f.Need("lanes")
	n.loss.read(f)
	at := f.place("lanes")
	if at == nil || !r.vector(at, "a vector of lanes") {
		return
	}
	for i, v := range at.value.Elements() {
		lane := at.item(i, v)
		n.bodies = append(n.bodies, body{at: lane, nodes: r.sequence(lane, f.depth+1)})
	}
	if n.loss.quorum > len(n.bodies) {
		f.FaultAt("quorum", form.OutOfRange, "expected at most %d, the number of lanes, found %d", len(n.bodies), n.loss.quorum)
		n.loss.quorum = len(n.bodies)
	}
}

func (r *reading) readMatch(n *node, f fields) {
	f.Need("on", "branches")
	n.value = r.field(f, "on", false)
	at := f.place("branches")
	switch {
	case at == nil:
		return
	case at.value.Kind() != edn.KindMap:
		r.find(at, stone.Finding{Type: badValue}, "expected a map from values to nodes, found a %s", at.value.Kind())
		return
	}
	seen := map[string]bool{}
	for k, v := range at.value.Entries() {
		key, ok := branchKey(k)
		branch := at.field(key, v)
		switch {
		case !ok:
			r.find(branch, stone.Finding{Type: "bad-branch"}, "expected a text, a name, a number, a boolean or nil to match, found a %s", k.Kind())
		case seen[key]:
			r.find(branch, stone.Finding{Type: "duplicate-branch", Queried: key}, "two branches for %q: remove one", key)
		}
		seen[key] = true
		n.bodies = append(n.bodies, body{key: key, at: branch, nodes: r.sequence(branch, f.depth+1)})
	}
	slices.SortStableFunc(n.bodies, func(a, b body) int { return strings.Compare(a.key, b.key) })
}

// branchKey returns the key of a branch as text. A number or boolean equals its JSON text, because keys in JSON are strings.
func branchKey(v edn.Value) (string, bool) {
	switch v.Kind() {
	case edn.KindString, edn.KindKeyword, edn.KindSymbol:
		return v.Text(), true
	case edn.KindNil, edn.KindBool, edn.KindInt, edn.KindFloat, edn.KindDecimal:
		text, err := edn.ToJSON(v)
		return string(text), err == nil
	}
	return "", false
}

func (r *reading) readAsk(n *node, f fields) {
	f.Need("question", "as")
	if v, ok := f.Field("question"); ok && v.EDN().Kind() == edn.KindVector {
		n.value = &template{at: place{up: f.at, key: "question", value: v.EDN()}}
		r.sentence(n.value, n.value.at)
	} else {
		n.value = r.field(f, "question", false)
	}
	if _, ok := f.Field("choices"); ok {
		f.At("choices").Texts(&n.choices)
	}
	f.At("as").Name(&n.as)
}

func readOutput(m *form.Map, n *node) {
	to := &n.spec.Requires.OutSchema
	m.At("output").Map(func(m *form.Map) {
		m.Need("schema")
		var name string
		switch ok := m.At("schema").Name(&name); {
		case !ok:
		case *to != "" && *to != name:
			m.FaultAt("schema", form.Invalid, "output.schema is %q, but requires.out-schema is %q: keep one of them", name, *to)
		default:
			*to = name
		}
	})
}
