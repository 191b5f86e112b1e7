package stone

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/schema"
)

// Given describes the run for which a pipeline is validated.
type Given struct {
	// Input lists the types of the input nodes.
	Input []dag.AnyType
	// Grant lists the effects that the run allows. Nil means that it allows all effects.
	Grant []string
	// Unattended means that no one can answer questions, because the run has neither a Frontend nor a journal.
	Unattended bool

	policy policy  // the Policy of the Config
	dag    dag.DAG // the input nodes, in place of Input
}

// Given returns the Given that describes a run with this Config.
func (c Config) Given() Given {
	return Given{Grant: c.Grant, Unattended: c.Frontend == nil && c.Recorder == nil, policy: c.Policy, dag: c.Input}
}

// Validate checks p for a run that g describes, without running any part of p. It returns all findings, in the order of the tree.
//
// If Validate returns no findings and no leaf fails, the run cannot end in a failure of kind "missing-input".
func Validate(p Ashlar, g Given) Findings {
	found := check(p, g).sorted()
	if g.policy != nil {
		_, marked := g.policy.Enter(context.Background(), p, g)
		found = append(found, marked...)
	}
	return found
}

func check(p Ashlar, given Given) *validator {
	n := p.changes()
	v := &validator{facts: facts{ids: make(map[string]int, n), entries: make([]entry, 0, n)}, asked: map[string]*spec{}, grant: given.Grant, unattended: given.Unattended}
	for _, t := range []dag.AnyType{dag.Failure, laneType} {
		v.entries[v.id(t.Name())].written = t
	}
	v.input(p, given)
	v.visit(p, 0)
	v.unreduced("the result of the pipeline")
	v.late()
	v.unused()
	v.silentLosses()
	return v
}

// changes returns an estimate of the number of types in p: the number of leaves whose output type differs from the previous
// leaf's, plus 8.
func (p Ashlar) changes() int {
	n, last := 8, dag.AnyType(nil)
	p.each(func(s *spec) {
		if s.out != nil && s.out != last {
			n, last = n+1, s.out
		}
	})
	return n
}

// validator visits a tree in the order in which a run executes it, but with the types of nodes instead of nodes.
type validator struct {
	facts
	here    *place
	last    latest
	pending []*place // the fan-outs that are not reduced yet
	bare    bool     // whether a path without a pending fan-out leads to this place
	closes  *closing // facts about the enclosing Reduce; nil outside a Reduce
	rounds  int32    // the number of enclosing loops
	makes   map[madeKey]made
	silent  []*place // the fan-outs that can lose lanes without declaring it

	findings []located
	unmet    []demand // the queries for types that are not produced yet
	readings []demand // the queries for types that were not written yet when they were checked
	asked    map[string]*spec
	grant    []string

	unattended bool // whether no one can answer questions

	everything   bool    // whether a query reads nodes of all types
	failuresRead bool    // whether a query reads all failures
	helpers      int     // the number of enclosing leaves, whose children's nodes are dropped
	suggestions  int     // the number of suggestions so far
	places       []place // unused places of the current block; allocating blocks is cheaper
}

// place is a position in the tree that the walk has reached.
type place struct {
	up      *place
	spec    *spec
	index   int   // the index among the children of up
	order   int   // its position in the tree
	rounds  int32 // for a fan-out: the number of enclosing loops
	exposed bool  // for a fan-out: whether it is already known to lack a reducer
}

// located is a finding with its order in the tree.
type located struct {
	Finding
	order int
}

// demand is a query at a place.
type demand struct {
	at         *place
	query      dag.Query
	typ        dag.AnyType // the type that the query reads or, for Since, starts after
	id         int
	inLanes    bool // whether nodes of the type exist only in lanes, which the query does not read
	suggestion string
}

// path returns the address of the place in the tree, without rounds and lanes.
func (p *place) path() string {
	if p.up == nil {
		return address.Escape(p.spec.name)
	}
	if p.up.spec.form == reduceForm {
		return p.up.path()
	}
	path := p.up.path()
	if p.up.spec.form == matchForm {
		path += "[" + address.Escape(p.up.spec.keys[p.index]) + "]"
	}
	nth := 1
	if p.up.spec.form != scopedForm && p.up.spec.form != leafForm {
		nth = p.up.spec.occurrence(p.index)
	}
	return address.Child(path, p.spec.name, nth)
}

// find adds the finding f at a place, with a formatted message.
func (v *validator) find(at *place, f Finding, format string, args ...any) {
	f.Ashlar, f.Path, f.Message = start(at.spec.name), bounds.Cut(at.path(), longestPath), fmt.Sprintf(format, args...)
	v.findings = append(v.findings, located{f, at.order})
}

// longestPath is the maximum length of a finding's path, in bytes.
const longestPath = 8 << 10

func (v *validator) sorted() Findings {
	slices.SortStableFunc(v.findings, func(a, b located) int { return cmp.Compare(a.order, b.order) })
	var out Findings
	for _, f := range v.findings {
		out = append(out, f.Finding)
	}
	return out
}

// laneType is the type of the node that marks the beginning of a lane.
var laneType = dag.NewType[struct {
	Index int `json:"index"`
}]("stone/lane")

// input records which types the input nodes have.
func (v *validator) input(p Ashlar, given Given) {
	for i, t := range given.Input {
		if t == nil || t.Err() != nil {
			v.findings = append(v.findings, located{Finding: Finding{Type: "bad-type", Ashlar: p.Name(), Path: address.Escape(p.Name()), Message: fmt.Sprintf("type %d of the input: %v", i+1, badType(t))}})
			continue
		}
		id := v.id(t.Name())
		v.set(id, surely, surely)
		if e := &v.entries[id]; e.written == nil {
			e.written, e.given = t, true
		}
		v.last = latest{there: surely, typ: t}
	}
	for _, name := range given.dag.Types() {
		line := never
		if _, err := given.dag.Nearest(name); err == nil {
			line = surely
		}
		v.set(v.id(name), line, surely)
		v.last = latest{there: surely}
	}
}

func badType(t dag.AnyType) error {
	if t == nil {
		return errors.New("nil: pass a dag.Type")
	}
	return t.Err()
}

// enter returns a new place for s, the child of the current place with the given index.
func (v *validator) enter(s *spec, index int) *place {
	if len(v.places) == 0 {
		v.places = make([]place, min(256, 4+v.order))
	}
	p := &v.places[0]
	v.places = v.places[1:]
	v.order++
	*p = place{up: v.here, spec: s, index: index, order: v.order}
	return p
}

// visit walks a, the child of the current place with the given index.
func (v *validator) visit(a Ashlar, index int) {
	outer := v.here
	s := a.spec()
	v.here = v.enter(s, index)
	v.own(s)
	switch s.form {
	case leafForm:
		v.leaf(s)
	case seqForm, flowForm:
		v.children(s)
	case loopForm:
		v.loop(s)
	case matchForm:
		v.match(s)
	case mapForm:
		v.mapItems(s)
	case parallelForm:
		v.parallel(s)
	case reduceForm:
		v.reduce(s)
	case rescueForm:
		v.rescue(s)
	case scopedForm:
		if len(v.pending) > 0 {
			v.unreduced(fmt.Sprintf("%q", s.name))
		}
		v.byRule(s)
	}
	v.here = outer
}

// own checks the properties of the spec itself, not its children.
func (v *validator) own(s *spec) {
	for _, f := range s.faults {
		v.find(v.here, f, "%s", f.Message)
	}
	if s.name == "" && s.form != reduceForm { // a reduce has the same name as its body
		v.find(v.here, Finding{Type: "no-name"}, "a %s has no name: add one, since paths, events and findings need it", formNames[s.form])
	}
	if why := badName(s.name); why != "" && s.form != reduceForm {
		v.find(v.here, Finding{Type: "bad-name", Queried: start(s.name)}, "the name %q %s: rename it", start(s.name), why)
	}
	v.sameNames(s)
	v.gluedNames(s)
	v.effects(s)
	if s.question != nil {
		if other := v.asked[s.name]; other != nil && other != s {
			v.find(v.here, Finding{Type: "duplicate-question", Queried: s.name}, "another Ask has the name %q: a frontend could not tell them apart, rename one", s.name)
		}
		if v.asked[s.name] == nil {
			v.unanswered(s.name)
		}
		v.asked[s.name] = s
	}
	if s.detail != nil {
		v.checkDetail(s)
	}
}

// unanswered adds a warning if the spec asks a question that no one can answer.
func (v *validator) unanswered(name string) {
	if v.unattended {
		v.find(v.here, Finding{Type: "no-frontend", Warning: true, Queried: name}, "no one answers the question %q: set Config.Frontend, or a journal in which it can wait", name)
	}
}

// checkDetail adds the findings about a leaf that the package that made the leaf reports.
func (v *validator) checkDetail(s *spec) {
	defer func() {
		if p := recover(); p != nil {
			v.find(v.here, Finding{Type: "bad-detail"}, "the Check of its detail panicked: %v", p)
		}
	}()
	var found []Finding
	if s.detail.Check != nil {
		found = s.detail.Check()
	}
	if s.detail.CheckGrant != nil && v.grant != nil {
		found = append(found[:len(found):len(found)], s.detail.CheckGrant(v.grant)...)
	}
	for _, f := range found {
		v.find(v.here, f, "%s", f.Message)
	}
	for _, name := range (Ashlar{s}).Questions() {
		v.unanswered(name)
	}
}

// badName returns why a name cannot be used in paths, events and findings, or "" if it can. An empty name is not reported here,
// because it is a separate finding.
func badName(name string) string {
	switch {
	case name == "":
		return ""
	case len(name) > bounds.Name:
		return fmt.Sprintf("has %d bytes, where at most %d are allowed", len(name), bounds.Name)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.TrimSpace(name) == "":
		return "is blank"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

// start returns name, truncated if it is too long for a message.
func start(name string) string {
	if len(name) <= bounds.Name {
		return name
	}
	return bounds.Cut(name, 40)
}

// few is the number of children up to which names are compared pairwise; above that, a map is faster.
const few = 8

// sameNames adds a finding for different children that have the same name.
func (v *validator) sameNames(s *spec) {
	if len(s.children) < 2 {
		return
	}
	var byName map[string]*spec
	if len(s.children) > few {
		byName = make(map[string]*spec, len(s.children))
	}
	for i, c := range s.children {
		first := byName[c.Name()]
		if byName == nil {
			if j := slices.IndexFunc(s.children[:i], func(o Ashlar) bool { return o.Name() == c.Name() }); j >= 0 {
				first = s.children[j].within()
			}
		} else if first == nil {
			byName[c.Name()] = c.within()
		}
		if first != nil && first != c.within() {
			v.find(v.here, Finding{Type: "duplicate-name", Queried: c.Name()}, "two different steps under it have the name %q: rename one", c.Name())
		}
	}
}

// gluedNames adds a finding if a step within glue has the same address as a step outside it.
func (v *validator) gluedNames(s *spec) {
	if s.glue || !slices.ContainsFunc(s.children, Ashlar.IsGlue) {
		return
	}
	seen := map[string]bool{} // whether the name occurred in glue
	var walk func(s *spec, within bool)
	walk = func(s *spec, within bool) {
		for _, c := range s.children {
			switch below := c.spec(); {
			case below.glue && below.form != leafForm:
				walk(below, true)
			case below.glue:
			default:
				before, known := seen[below.name]
				if known && (before || within) {
					v.find(v.here, Finding{Type: "duplicate-name", Queried: below.name}, "two steps under it have the name %q, one of them in glue: rename one", below.name)
				}
				seen[below.name] = before || within
			}
		}
	}
	if s.form != matchForm && s.form != parallelForm {
		walk(s, false)
		return
	}
	for _, c := range s.children { // in other forms, addresses distinguish the children
		clear(seen)
		walk(&spec{parts: parts{children: []Ashlar{c}}}, false)
	}
}

// within returns the spec of a or, if a is a Reduce, the spec of its innermost body. Every Reduce has its own spec but the name
// of its body, so using the same reducer twice is not a conflict of names.
func (a Ashlar) within() *spec {
	s := a.spec()
	for s.form == reduceForm {
		s = s.children[0].spec()
	}
	return s
}

// effects checks that the effects of a leaf are known and granted.
func (v *validator) effects(s *spec) {
	for _, e := range s.effects {
		f := Finding{Type: "effect-not-granted", Queried: e}
		if unknown, ok := errors.AsType[*grants.UnknownError](grants.Check(e)); ok {
			f.Suggestion = unknown.Suggestion
			if grants.Allowed(e, v.grant) {
				v.find(v.here, Finding{Type: "unknown-effect", Warning: true, Queried: e, Suggestion: f.Suggestion}, "unknown effect %q: use one of package effect, or a family of your own, such as db/write", e)
			}
		}
		if !grants.Allowed(e, v.grant) {
			v.find(v.here, f, "it needs the effect %q, which the run does not grant: grant it, or remove this step", e)
		}
	}
}

// sameSchema reports whether two types with the same name also have the same schema, so that a pipeline treats them as one type.
func sameSchema(a, b dag.AnyType) bool {
	sa, sb := a.Schema(), b.Schema()
	return sa == sb || bytes.Equal(sa.JSON(), sb.JSON())
}

// writes records that a node of type t exists from this place on.
func (v *validator) writes(t dag.AnyType) {
	id := v.id(t.Name())
	v.declare(id, t)
	e := &v.entries[id]
	e.product = e.product || v.helpers == 0
	if e.line != surely {
		v.set(id, surely, surely)
	}
	v.last = latest{there: surely, typ: t}
}

// declare records t as the type that is written under its name. If another type with this name but a different schema was written
// before, declare adds a finding.
func (v *validator) declare(id int, t dag.AnyType) {
	e := &v.entries[id]
	if e.written == t || e.alike == t {
		return
	}
	err := t.Err()
	switch {
	case err != nil:
		v.find(v.here, Finding{Type: "bad-type", Queried: t.Name()}, "%v", err)
	case e.written == nil:
		e.written, e.writer = t, v.here
	case sameSchema(e.written, t):
		e.alike = t
		if e.writer == nil {
			e.writer = v.here
		}
	case e.writer == nil:
		v.find(v.here, Finding{Type: "schema-mismatch", Queried: e.name}, "it produces %q, which %s with another schema: give the type another name", e.name, e.origin())
	default:
		v.find(v.here, Finding{Type: "schema-mismatch", Queried: e.name}, "it produces %q with another schema than %s does: use one dag.Type for one name", e.name, e.writer.path())
	}
}

// unreduced adds a finding for each pending fan-out, because reader reads its lanes before a reducer has joined them. It then
// clears the list.
func (v *validator) unreduced(reader string) {
	for _, at := range v.pending {
		if !at.exposed {
			at.exposed = true
			v.find(at, Finding{Type: "fanout-not-reduced"}, "its lanes reach %s without a reducer between: follow it with stone.Reduce", reader)
		}
	}
	v.pending, v.last.lanes = nil, false
}

// readable checks that the type that is written under the name of d.typ is compatible with d.typ.
func (v *validator) readable(d demand) {
	if err := d.typ.Err(); err != nil {
		v.find(d.at, Finding{Type: "bad-type", Queried: d.typ.Name()}, "%v", err)
		return
	}
	e := &v.entries[d.id]
	if e.written == nil || e.written == d.typ {
		return
	}
	problems := schema.Compatible(e.written.Schema(), d.typ.Schema())
	if len(problems) == 0 {
		return
	}
	where, writer := problems[0].Path, e.origin()
	if where == "" {
		where = "the content"
	}
	if e.writer != nil {
		writer = e.writer.path() + " writes"
	}
	v.find(d.at, Finding{Type: "schema-mismatch", Queried: e.name},
		"%s cannot read the %q that %s: %s: %s", d.at.spec.name, e.name, writer, where, problems[0].Message)
}

// unused adds a warning for each type that no step reads and that is not the result. Reserved types are part of the run's record
// and need not be read. A step with other effects than reading, such as sending mail, needs no reader, because the effect is its
// purpose.
func (v *validator) unused() {
	v.markRead(v.last)
	if v.everything {
		return
	}
	for _, e := range v.entries {
		if e.product && !e.queried && !dag.Reserved(e.name) && e.writer != nil && !e.writer.spec.said().Guards && !slices.ContainsFunc(e.writer.spec.effects, changes) {
			v.find(e.writer, Finding{Type: "unused-produce", Warning: true, Queried: e.name},
				"nothing reads %q, and it is not the result: remove it, or read it where it is needed", e.name)
		}
	}
}

// changes reports whether a step with the effect e may do more than read files or ask people.
func changes(e string) bool { return e != effect.None && e != effect.FSRead && e != effect.Ask }

// Types returns the type names of the input nodes.
func (g Given) Types() []string {
	names := g.dag.Types()
	for _, t := range g.Input {
		if t != nil {
			names = append(names, t.Name())
		}
	}
	return names
}
