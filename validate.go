package stone

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// Validate checks p without running any of it, and returns all findings at once.
// It reads what Run would: the types in cfg.Input are there from the start, and
// effects must be within cfg.Grant.
//
// A tree without errors and warnings, in whose run no leaf fails, never ends in
// a failure of kind "missing-input".
func Validate(p Ashlar, cfg Config) Findings {
	v := &validator{
		facts:   map[string]fact{},
		gains:   map[*spec]map[string]fact{},
		queried: map[string]bool{},
		made:    map[string]*place{},
		asked:   map[string]*spec{},
		grant:   cfg.Grant,
	}
	v.input(cfg.Input)
	v.visit(p, nil, 0)
	if v.pending != nil {
		v.unreduced("the result of the pipeline")
	}
	v.unused()
	return v.findings
}

// validator walks the tree as the machine would, over types in place of nodes.
type validator struct {
	facts map[string]fact // what is there at this point of the walk
	trail []change        // what was changed, to walk branches from one state
	last  last            // what the latest node is
	here  *place

	pending *place // a fan-out that nobody has reduced yet

	findings Findings
	gains    map[*spec]map[string]fact // what loops gain by a round
	queried  map[string]bool           // types that something reads
	made     map[string]*place         // types that something writes, and where first
	order    []string                  // of made
	asked    map[string]*spec          // questions
	grant    []string
}

// place is where the walk stands.
type place struct {
	up    *place
	spec  *spec
	index int // among the children of up
}

func (p *place) path() string {
	if p.up == nil {
		return escape(p.spec.name)
	}
	if p.up.spec.form == reduceForm {
		return p.up.path()
	}
	path := p.up.path()
	if p.up.spec.form == matchForm {
		path += "[" + escape(p.up.spec.keys[p.index]) + "]"
	}
	path += "/" + escape(p.spec.name)
	if n := p.up.spec.occurrence(p.index); n > 1 {
		path += fmt.Sprintf("#%d", n)
	}
	return path
}

// certainty says whether something is there when the walk comes by.
type certainty uint8

const (
	never certainty = iota
	maybe
	surely
)

// fact is what is known of a type: whether there is a node of it on the line of
// first parents, and whether there is one in the lanes of a fan-out before.
type fact struct {
	typ   dag.AnyType // nil for the types of an input
	line  certainty
	lanes certainty
}

type change struct {
	name string
	old  fact
	had  bool
}

// last is the type of the latest node: one that is known, or one of several.
type last struct {
	types []dag.AnyType
	known bool
	any   bool // there is a latest node
}

func (v *validator) set(name string, f fact) {
	old, had := v.facts[name]
	v.trail = append(v.trail, change{name, old, had})
	v.facts[name] = f
}

// apart runs walk, takes back what it changed, and returns what that was.
func (v *validator) apart(walk func()) map[string]fact {
	mark, last, pending := len(v.trail), v.last, v.pending
	walk()
	gained := map[string]fact{}
	for _, c := range slices.Backward(v.trail[mark:]) {
		if _, seen := gained[c.name]; !seen {
			gained[c.name] = v.facts[c.name]
		}
		if c.had {
			v.facts[c.name] = c.old
		} else {
			delete(v.facts, c.name)
		}
	}
	v.trail = v.trail[:mark]
	v.last, v.pending = last, pending
	return gained
}

func (v *validator) find(warning bool, typ, queried, suggestion, format string, args ...any) {
	v.findings = append(v.findings, Finding{
		Type: typ, Warning: warning, Ashlar: v.here.spec.name, Path: v.here.path(),
		Queried: queried, Suggestion: suggestion, Message: fmt.Sprintf(format, args...),
	})
}

func (v *validator) input(d dag.DAG) {
	if d.Len() == 0 {
		return
	}
	for n := range d.Nodes() {
		f := v.facts[n.Type()]
		f.lanes = surely
		if _, err := d.Nearest(n.Type()); err == nil {
			f.line = surely
		}
		v.facts[n.Type()] = f
	}
	v.last = last{any: true}
}

// visit walks a, the index-th child of up.
func (v *validator) visit(a Ashlar, up *place, index int) {
	outer := v.here
	v.here = &place{up, a.spec(), index}
	defer func() { v.here = outer }()
	s := v.here.spec
	v.own(s)
	switch s.form {
	case leafForm:
		v.leaf(s)
	case seqForm:
		v.inOrder(s.children)
	case loopForm:
		v.loop(s)
	case matchForm:
		v.match(s)
	case mapForm:
		v.mapItems(s)
	case parallelForm:
		v.lanes(s.children, s.allLanes)
	case reduceForm:
		v.pending = nil
		v.inOrder(s.children)
	case rescueForm:
		v.rescue(s)
	case scopedForm:
		v.scoped(s)
	}
}

// own checks what stands in the spec alone.
func (v *validator) own(s *spec) {
	for _, f := range s.faults {
		f.Ashlar, f.Path = s.name, v.here.path()
		v.findings = append(v.findings, f)
	}
	if s.name == "" {
		v.find(false, "no-name", "", "", "every ashlar needs a name")
	}
	v.sameNames(s)
	v.effects(s)
	if s.question != nil {
		if other := v.asked[s.name]; other != nil && other != s {
			v.find(false, "duplicate-question", "", "", "another Ask has the name %q: a frontend could not tell them apart, rename one", s.name)
		}
		v.asked[s.name] = s
	}
}

// sameNames finds children that differ and have one name.
func (v *validator) sameNames(s *spec) {
	if len(s.children) < 2 {
		return
	}
	seen := make(map[string]*spec, len(s.children))
	for _, c := range s.children {
		name := c.Name()
		if first := seen[name]; first == nil {
			seen[name] = c.spec()
		} else if first != c.spec() {
			v.find(false, "duplicate-name", name, "", "two different ashlars under it have the name %q: rename one", name)
		}
	}
}

func (v *validator) effects(s *spec) {
	if v.grant == nil {
		return
	}
	for _, e := range s.effects {
		if !slices.Contains(v.grant, e) {
			v.find(false, "effect-not-granted", e, "", "it needs the effect %q, which the run does not grant: grant it, or do without this ashlar", e)
		}
	}
}

func (v *validator) leaf(s *spec) {
	v.reads(s)
	if s.out == nil || s.out.Name() == "" {
		v.find(false, "bad-type", "", "", "it does not say what it produces: give it a dag.Type")
		return
	}
	v.checkDetail(s)
	if s.walk != nil { // its children see its draft, and leave nothing behind
		v.apart(func() {
			v.writes(s.out, surely)
			s.walk(&Walker{v, s})
		})
	}
	v.writes(s.out, surely)
}

// checkDetail asks the package that made a leaf what it finds.
func (v *validator) checkDetail(s *spec) {
	checker, ok := s.detail.(interface{ Check() []Finding })
	if !ok {
		return
	}
	for _, f := range checker.Check() {
		f.Ashlar, f.Path = s.name, v.here.path()
		v.findings = append(v.findings, f)
	}
}

// writes notes that a node of type t is there from here on.
func (v *validator) writes(t dag.AnyType, sure certainty) {
	name := t.Name()
	old, had := v.facts[name]
	if old.typ == nil || old.typ != t {
		if err := t.Err(); err != nil {
			v.find(false, "bad-type", name, "", "%v", err)
		} else if had && old.typ != nil && !sameSchema(old.typ, t) {
			v.find(false, "schema-mismatch", name, "", "it produces %q with another schema than an ashlar before it: use one dag.Type for one name", name)
		}
	}
	if old.line != surely || old.typ != t {
		v.set(name, fact{typ: t, line: max(old.line, sure), lanes: old.lanes})
	}
	if v.made[name] == nil {
		v.made[name] = v.here
		v.order = append(v.order, name)
	}
	v.last = last{types: []dag.AnyType{t}, known: true, any: true}
}

func sameSchema(a, b dag.AnyType) bool {
	sa, sb := a.Schema(), b.Schema()
	return sa == sb || bytes.Equal(sa.JSON(), sb.JSON())
}

// reads checks the queries of a leaf or of a decision.
func (v *validator) reads(s *spec) {
	if v.pending != nil {
		v.unreduced(fmt.Sprintf("%q", s.name))
	}
	for _, q := range s.queries {
		if t := q.Type(); t != nil {
			v.query(q, t)
		} else {
			for _, t := range v.last.types {
				v.queried[t.Name()] = true
			}
			if q == dag.Everything {
				v.queried[""] = true
			}
		}
	}
}

func (v *validator) query(q dag.Query, t dag.AnyType) {
	name := t.Name()
	v.queried[name] = true
	if after := q.After(); after != nil {
		v.queried[after.Name()] = true
	}
	f := v.facts[name]
	there := max(f.line, f.lanes)
	if q.IsNearest() {
		there = f.line
	}
	switch {
	case q.IsNearest() && f.line == never && f.lanes != never:
		v.find(false, "lane-type-read-as-one", name, "",
			"%s queries %q, which only the lanes of a fan-out before it produce: read it with dag.Every(…) and All", v.here.spec.name, name)
	case q.IsOptional() || name == dag.Failure.Name() && !q.IsNearest():
	case there == never:
		v.find(false, "missing-producer", name, v.suggest(name),
			"%s queries %q but no upstream ashlar produces it", v.here.spec.name, name)
	case there == maybe:
		v.find(true, "maybe-unavailable", name, "",
			"%s queries %q, which is not produced on every way to it: produce it on all of them, or declare it dag.Optional", v.here.spec.name, name)
	}
	if f.typ != nil && f.typ != t {
		v.readable(f.typ, t)
	}
}

// readable checks that a reader of type t understands what the producer writes.
func (v *validator) readable(producer, t dag.AnyType) {
	problems := schema.Compatible(producer.Schema(), t.Schema())
	if len(problems) == 0 {
		return
	}
	where := problems[0].Path
	if where == "" {
		where = "the content"
	}
	v.find(false, "schema-mismatch", t.Name(), "",
		"%s cannot read the %q that is produced before it: %s: %s", v.here.spec.name, t.Name(), where, problems[0].Message)
}

// maxSuggestions bounds the search for names that were meant: each one looks at
// all names.
const maxSuggestions = 50

func (v *validator) suggest(name string) string {
	if len(v.findings) > maxSuggestions {
		return ""
	}
	names := make([]string, 0, len(v.facts))
	for n := range v.facts {
		names = append(names, n)
	}
	slices.Sort(names)
	return closest(name, names)
}

// unreduced reports the fan-out that somebody is about to read.
func (v *validator) unreduced(reader string) {
	reading := v.here
	v.here, v.pending = v.pending, nil
	v.find(false, "fanout-not-reduced", "", "",
		"its lanes are read by %s without a reducer between: follow it with stone.Reduce", reader)
	v.here = reading
}

// unused warns of types that nothing reads and that are not the result.
func (v *validator) unused() {
	if v.queried[""] {
		return
	}
	for _, t := range v.last.types {
		v.queried[t.Name()] = true
	}
	for _, name := range v.order {
		if !v.queried[name] {
			v.here = v.made[name]
			v.find(true, "unused-produce", name, "", "nothing reads %q, and it is not the result", name)
		}
	}
}
