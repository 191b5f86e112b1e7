package stone

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// An Ashlar is a step from DAG to DAG that declares what it reads and produces. Single steps and compositions of steps are both
// Ashlars. An Ashlar is immutable and may be used in any number of places and goroutines. The zero Ashlar is invalid, and
// Validate reports it.
type Ashlar struct{ s *spec }

// spec describes an ashlar as data for the interpreter, the validator and the tools. Only bodies and decisions are functions.
type spec struct {
	parts
	memo atomic.Pointer[found]
}

// found returns the facts derived from s, which are computed once.
func (s *spec) found() *found {
	f := s.memo.Load()
	for f == nil {
		s.memo.CompareAndSwap(nil, new(found))
		f = s.memo.Load()
	}
	return f
}

// clone returns a copy of s whose composite may be changed.
func (s *spec) clone() *spec {
	own := *s.composite
	c := &spec{parts: s.parts}
	c.composite = &own
	return c
}

// parts holds the fields that an ashlar of any form may have.
type parts struct {
	form     form
	name     string
	about    string
	glue     bool
	children []Ashlar
	out      dag.AnyType // a leaf's result type, or a map's item type
	queries  []dag.Query // the queries of the ashlar's own body or decision
	settings             // set by options
	faults   []Finding   // mistakes in the construction, which Validate reports

	body     func(context.Context, dag.DAG, time.Time) (*dag.Node, error) // the body of a leaf
	walk     Walk                                                         // for a leaf with children or a Scoped: how they run
	question *ask.Question                                                // for an Ask: the part of the question known before a run
	render   func(dag.DAG) ([]byte, error)                                // for an Ask or a call: builds the text before the leaf starts
	*composite
}

// composite holds the fields that only some composite forms need, and the fields that Replace sets. All other ashlars, mostly
// leaves, share an empty composite.
type composite struct {
	replaced   map[*spec]Ashlar      // the replacement of each original child
	keys       []string              // for a match: the value of each branch, as canonical JSON
	lens       []string              // for a match: a field's path in the latest node
	key        func() *schema.Schema // for a match by On: the schema of its key
	max        int                   // for a loop: the maximum number of rounds
	lanes      int                   // for a fan-out: the number of lanes that run at once, and the number that must survive
	quorum     int
	allLanes   bool
	allowEmpty bool // for a map: whether the list may be empty

	decision *decision                             // for a loop, match or map
	enter    func(dag.DAG, any) ([]dag.DAG, error) // for a map: returns the first DAG of each lane
	scope    func(context.Context, dag.DAG) (dag.DAG, error)
}

var noComposite = new(composite) // never modified

// form is the form of an ashlar, for the interpreter and the validator.
type form uint8

const (
	leafForm form = iota
	seqForm
	flowForm
	loopForm
	matchForm
	mapForm
	parallelForm
	reduceForm
	rescueForm
	scopedForm
)

var formNames = [...]string{"leaf", "seq", "flow", "loop", "match", "map", "parallel", "reduce", "rescue", "scoped"}

// decision is a choice that the interpreter makes and records: whether to continue a loop, which branch of a match to run, or
// which items of a map to process.
type decision struct {
	take    func(dag.DAG) (any, error)
	restore func(json.RawMessage) (any, error) // decodes a recorded result of take
}

var noAshlar = &spec{parts: parts{name: "?", composite: noComposite, faults: []Finding{{
	Type: "nil-ashlar", Message: "zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here",
}}}}

func (a Ashlar) spec() *spec {
	if a.s == nil {
		return noAshlar
	}
	return a.s
}

// IsZero reports whether a is the zero Ashlar.
func (a Ashlar) IsZero() bool { return a.s == nil }

// Name returns the name of a in paths, events and findings.
func (a Ashlar) Name() string { return a.spec().name }

// Glue returns a marked as glue. Packages that compile other formats, such as plans, to ashlars insert glue between their users'
// steps. Glue does not appear in events, names, paths or drawings.
//
// A glue leaf is neither sent to the executor nor recorded: a resumed run calls its body again, so its result must depend only on
// what it reads. A glue sequence, flow, match or rescue does not appear in its children's addresses, so their names must differ
// from the names of its sibling steps. Other forms cannot be glue.
func (a Ashlar) Glue() Ashlar {
	s := &spec{parts: a.spec().parts}
	s.glue = true
	if !slices.Contains(glueForms, s.form) {
		s.faults = append(slices.Clip(s.faults), Finding{Type: "bad-option", Message: "a " + formNames[s.form] + " cannot be glue: addresses need its name"})
	}
	return Ashlar{s}
}

var glueForms = []form{leafForm, seqForm, flowForm, matchForm, rescueForm}

// IsGlue reports whether a is glue.
func (a Ashlar) IsGlue() bool { return a.spec().glue }

// Form returns "leaf", "seq", "flow", "loop", "match", "map", "parallel",
// "reduce", "rescue" or "scoped".
func (a Ashlar) Form() string { return formNames[a.spec().form] }

// Children returns the direct steps of a, or none for a leaf.
func (a Ashlar) Children() []Ashlar { return append([]Ashlar(nil), a.spec().children...) }

// Branches returns the values that select the children of a match, as JSON and in the order of Children. For any other ashlar, it
// returns nil.
func (a Ashlar) Branches() []string { return append([]string(nil), a.spec().keys...) }

// Version returns the version of a leaf, or "" if it has none.
func (a Ashlar) Version() string { return a.spec().version }

// Rounds returns a loop's maximum number of rounds, or 0 for any other ashlar.
func (a Ashlar) Rounds() int { return a.spec().max }

// Queries returns a's own queries, without its children's queries.
func (a Ashlar) Queries() []dag.Query { return append([]dag.Query(nil), a.spec().queries...) }

// QueriesAll returns the queries of a and its descendants that no earlier step within a satisfies: the inputs that a needs when
// it starts. It omits queries for the latest node and for everything.
func (a Ashlar) QueriesAll() []dag.Query {
	var out []dag.Query
	for _, d := range check(a, Given{}).unmet {
		if !d.inLanes && !slices.Contains(out, d.query) {
			out = append(out, d.query)
		}
	}
	return out
}

// Result returns the type of the last node that a adds, or nil if it depends on the run or a adds none.
func (a Ashlar) Result() dag.AnyType { return check(a, Given{}).last.typ }

// Lens returns the field path that a match reads in the latest node, or nil for any other ashlar.
func (a Ashlar) Lens() []string { return append([]string(nil), a.spec().lens...) }

// Produces returns the type that a produces, or nil if a is not a leaf.
func (a Ashlar) Produces() dag.AnyType {
	if s := a.spec(); s.form != mapForm {
		return s.out
	}
	return nil
}

// ProducesAll returns the types that a and its descendants can produce, each once, in the order of the tree.
func (a Ashlar) ProducesAll() []dag.AnyType {
	var out []dag.AnyType
	seen := map[string]bool{}
	a.each(func(s *spec) {
		for t := range s.produces() {
			if !seen[t.Name()] {
				seen[t.Name()] = true
				out = append(out, t)
			}
		}
	})
	return out
}

// produces returns an iterator over the types that s itself writes, without its descendants.
func (s *spec) produces() iter.Seq[dag.AnyType] {
	return func(yield func(dag.AnyType) bool) {
		if s.out != nil && !yield(s.out) {
			return
		}
		s.walk.writes()(yield)
	}
}

// Question returns the part of an Ask's question that is known before a run. It returns false if a is not an Ask.
func (a Ashlar) Question() (ask.Question, bool) {
	if q := a.spec().question; q != nil {
		return *q, true
	}
	return ask.Question{}, false
}

// Questions returns the names of the questions that a itself may ask: an Ask's name, or the questions of an agent's
// tools.
func (a Ashlar) Questions() []string {
	s := a.spec()
	if s.question != nil {
		return []string{s.name}
	}
	if asks := s.said().Questions; asks != nil {
		return asks()
	}
	return nil
}

// Replace returns a copy of a with ashlars in its tree replaced. It calls with once for each ashlar, even if it is used in
// several places; if with returns true, the ashlar that it returned takes that place. Replacements themselves are not searched.
// The original a does not change.
func (a Ashlar) Replace(with func(Ashlar) (Ashlar, bool)) Ashlar {
	return replacer{with, map[*spec]Ashlar{}}.replace(a)
}

// replacer remembers the replacement of each ashlar.
type replacer struct {
	with func(Ashlar) (Ashlar, bool)
	done map[*spec]Ashlar
}

func (r replacer) replace(a Ashlar) Ashlar {
	out, known := r.done[a.s]
	if !known {
		var ok bool
		if out, ok = r.with(a); !ok {
			out = r.within(a)
		}
		r.done[a.s] = out
	}
	return out
}

// within returns a copy of a with its descendants replaced.
func (r replacer) within(a Ashlar) Ashlar {
	old := a.spec()
	children := make([]Ashlar, len(old.children))
	changed := false
	for i, c := range old.children {
		children[i] = r.replace(c)
		changed = changed || children[i].s != c.s
	}
	if !changed {
		return a
	}
	s := old.clone()
	s.children, s.replaced = children, map[*spec]Ashlar{}
	for i, c := range old.children {
		s.replaced[c.s] = children[i]
		for first, now := range old.replaced {
			if now.s == c.s {
				s.replaced[first] = children[i]
			}
		}
	}
	return Ashlar{s}
}

// child returns the child of s that replaces a, or a itself. Bodies and walks refer to the original children.
func (s *spec) child(a Ashlar) (Ashlar, bool) {
	for _, c := range s.children {
		if c.s == a.s {
			return c, true
		}
	}
	c, ok := s.replaced[a.s]
	return c, ok
}

// Schema returns the schema of the last node that a writes, including nodes written by sequences, loops, walks and reducers. It
// returns nil if the node's type depends on branches or lanes.
func (a Ashlar) Schema() *schema.Schema {
	if t := a.last(); t != nil {
		return t.Schema()
	}
	return nil
}

// last returns the type of the last node that a writes, or nil if it is unknown.
func (a Ashlar) last() dag.AnyType {
	s := a.spec()
	switch s.form {
	case leafForm:
		return s.out
	case scopedForm:
		return s.lastOfWalk()
	case seqForm, flowForm, loopForm, reduceForm:
		if n := len(s.children); n > 0 {
			return s.children[n-1].last()
		}
	}
	return nil
}

// lastOfWalk returns the type of the last node that the walk of s writes, or nil if it is unknown.
func (s *spec) lastOfWalk() dag.AnyType {
	for _, b := range slices.Backward(s.blocks()) {
		switch b.how {
		case reading:
			continue
		case writing:
			return b.types[len(b.types)-1]
		case inOrder, again:
			return b.children[len(b.children)-1].last()
		}
		break
	}
	return nil
}

// Effects returns the effects that a and its descendants need, each once.
func (a Ashlar) Effects() []string {
	var out []string
	seen := map[string]bool{}
	a.each(func(s *spec) {
		for _, e := range s.effects {
			if !seen[e] {
				seen[e] = true
				out = append(out, e)
			}
		}
	})
	return out
}

// each calls fn for a and all of its descendants, parents first. It visits an ashlar once for each place in which it is used.
func (a Ashlar) each(fn func(*spec)) {
	s := a.spec()
	fn(s)
	for _, c := range s.children {
		c.each(fn)
	}
}

// Detail is a LeafOption for packages that make leaves: it describes properties of a leaf that its body does not show. Every
// field is optional, and every function must be safe for concurrent calls.
//
//	stone.Leaf(name, out, a.run, stone.Detail{Value: a, Check: a.check, Fingerprint: a.fingerprint})
type Detail struct {
	// Value is an arbitrary value, which the package can retrieve with Ashlar.Detail.
	Value any

	// Check returns findings, which Validate adds to its own.
	Check func() []Finding
	// CheckGrant returns the findings for a run that grants only the given effects. Use it if the effects that the leaf needs are
	// not known when the leaf is made.
	CheckGrant func(grant []string) []Finding
	// Guards means that the leaf only performs a check, and fails if the check fails. Validate then does not require another step
	// to read its node.
	Guards bool

	// Fingerprint is part of the leaf's fingerprint and keys. It must contain everything outside the body that can change the
	// result, such as settings, limits and the model's name.
	Fingerprint func() []byte
	// Render returns the texts, such as prompts, that the body builds from the DAG before its work starts. They are part of the
	// key under which other runs reuse the leaf's result. Render is called before the body and may read everything that the
	// leaf's queries name.
	Render func(dag.DAG) ([]byte, error)
	// Cached returns the maximum age of a result. If it is positive, the leaf reuses results up to that age from any run of its
	// tenant, whatever the run's reuse setting. The returned key is part of the reuse key and covers everything that depends on
	// the granted effects. A nil grant allows all effects.
	Cached func(grant []string) (key []byte, age time.Duration)
	// Prompt returns the constant text that the leaf sends to a model. The text is not part of any key: instead, a journal
	// compares it on resume, and the run reports a change.
	Prompt func() string
	// Prompts returns the adjustable texts that the leaf sends to a model. The keys are their names.
	Prompts func() map[string]string

	// Facts returns names and values that describe the leaf to people; see tree.Facts.
	Facts func() iter.Seq2[string, string]
	// Questions returns the names of the questions that the leaf may ask.
	Questions func() []string
	// Undeclared returns the names of the leaf's tools and capabilities that declare no effects. It calls of for every pipeline
	// behind them and includes the results. If Undeclared is nil, the leaf itself counts unless it declares effects; see
	// [Ashlar.Undeclared].
	Undeclared func(of func(Ashlar) []string) []string
	// Unpriced returns the names of the models without a known price that the leaf may call. A budget that limits money rejects
	// them. Every leaf that calls models must set Unpriced.
	Unpriced func(context.Context) []string
	// Bound returns the most that one attempt at the leaf may cost; see [Ashlar.Bound]. Its argument of returns the bound for one
	// run of a child. A nil Bound means that the body itself costs nothing.
	Bound func(ctx context.Context, of func(child Ashlar) budget.Bound) budget.Bound
	// Unfit returns an error if the leaf's model cannot meet the leaf's requirements, otherwise nil.
	Unfit func(context.Context) error
}

func (d Detail) apply(s *spec) { s.detail = &d }
func (Detail) ask()            {}
func (Detail) leaf()           {}

var noDetail Detail

// said returns the Detail of a leaf, or an empty Detail if the leaf has none.
func (s *spec) said() *Detail {
	if s.detail == nil {
		return &noDetail
	}
	return s.detail
}

// Detail returns the Detail of a leaf, or the zero Detail.
func (a Ashlar) Detail() Detail { return *a.spec().said() }

// Describe returns a copy of a with a description of its purpose and inputs. People and models read it to choose among published
// pipelines. The description is not part of any fingerprint.
func (a Ashlar) Describe(text string) Ashlar {
	s := &spec{parts: a.spec().parts}
	s.about = text
	return Ashlar{s}
}

// Description returns the text set by Describe, or "" if there is none.
func (a Ashlar) Description() string { return a.spec().about }

// Names returns the names of a and its descendants, parents first. A name occurs once for each place in which its ashlar is used,
// and ashlars without a name are skipped. Compare the names with the ashlars that a package defines to find the unused ones.
func (a Ashlar) Names() []string {
	var names []string
	if a.Name() != "" && a.Form() != "reduce" && !a.IsZero() && !a.IsGlue() { // a reduce has the same name as its body
		names = append(names, a.Name())
	}
	for _, c := range a.Children() {
		names = append(names, c.Names()...)
	}
	return names
}

// Undeclared returns the names of the leaves in a, and of the tools and capabilities that they may use, that declare no effects,
// so that their effects are unknown. Each name occurs once. [Effects] without arguments declares that a leaf has no effects.
func (a Ashlar) Undeclared() (names []string) {
	seen := map[*spec]bool{}
	var of func(Ashlar) []string
	of = func(a Ashlar) (own []string) {
		a.each(func(s *spec) {
			if !seen[s] {
				seen[s] = true
				own = append(own, s.undeclared(of)...)
			}
		})
		return own
	}
	for _, name := range of(a) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s *spec) undeclared(of func(Ashlar) []string) []string {
	if s.form != leafForm || s.question != nil || s.glue {
		return nil
	}
	if undeclared := s.said().Undeclared; undeclared != nil {
		return undeclared(of)
	}
	if s.effects == nil {
		return []string{s.name}
	}
	return nil
}
