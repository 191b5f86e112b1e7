package marks

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/grants"
)

// A state holds the marks that are known at a point of a pipeline.
type state struct {
	near, ever map[string]set // marks by type: of the nearest node, and of all nodes
	// shown contains, for the type of an answer, the types that the question shows and the marks that the answer lifts.
	shown map[string]map[reading]set
}

// A reading is one way to read a type.
type reading struct {
	typ string
	all bool
}

func (s state) clone() state {
	c := state{maps.Clone(s.near), maps.Clone(s.ever), map[string]map[reading]set{}}
	for answer, shown := range s.shown {
		c.shown[answer] = maps.Clone(shown)
	}
	return c
}

func (s state) equal(to state) bool {
	return maps.Equal(s.near, to.near) && maps.Equal(s.ever, to.ever) && maps.EqualFunc(s.shown, to.shown, maps.Equal)
}

// join merges the states of two alternative paths.
func join(a, b state) state {
	out := a.clone()
	union(out.near, b.near)
	union(out.ever, b.ever)
	for answer, shown := range out.shown {
		maps.DeleteFunc(shown, func(r reading, s set) bool { return b.shown[answer][r] != s })
	}
	maps.DeleteFunc(out.shown, func(_ string, shown map[reading]set) bool { return len(shown) == 0 })
	return out
}

func union(to, from map[string]set) {
	for name, s := range from {
		to[name] |= s
	}
}

// A walker walks a pipeline as a run does, but with the marks of types instead of nodes.
type walker struct {
	*policy
	state
	base    set                  // for a plan: marks of the text from which the plan was made
	unknown set                  // marks of types that the pipeline does not produce
	deps    []string             // types on which the enclosing branches depend
	flows   int                  // number of enclosing flows; their steps do not wait for each other
	quiet   int                  // number of enclosing agents; their tools are checked when called
	reads   map[stone.Ashlar]set // as in place
	types   map[string]set
	failing map[string]set            // marks of types within the body of a rescue
	ways    map[string]map[int]string // steps through which the text came, by type and mark
	found   stone.Findings
}

func newWalker(p *policy) *walker {
	return &walker{policy: p, state: state{map[string]set{}, map[string]set{}, map[string]map[reading]set{}}, reads: map[stone.Ashlar]set{}, types: map[string]set{}, failing: map[string]set{}, ways: map[string]map[int]string{}}
}

// within sets the initial state for the walk of a pipeline that a body executes. If the pipeline belongs to the program, only its
// input has the marks of the body's text. If it was made during the run, such as a plan, the pipeline itself has these marks too.
func (w *walker) within(ctx context.Context, up *place, p stone.Ashlar) {
	here := up.here(ctx)
	w.unknown = here
	w.near, w.ever = maps.Clone(up.types), maps.Clone(up.types)
	for _, q := range p.QueriesAll() {
		if t := q.Type(); t != nil {
			w.near[t.Name()] |= here
			w.ever[t.Name()] |= here
		}
	}
	if up.given != "" {
		w.near[up.given] = here
	}
	maps.Copy(w.types, w.near)
	if !slices.Contains(stone.In(ctx).Ashlar().Children(), p) {
		w.base = here
	}
}

// typed returns the marks that the policy gives to a type.
func (w *walker) typed(name string) set { return w.from(name, nil) }

// of returns the marks of the text that a reading reads.
func (w *walker) of(r reading) set {
	marks := w.near
	if r.all {
		marks = w.ever
	}
	s, known := marks[r.typ]
	if !known {
		s = w.typed(r.typ) | w.unknown
	}
	for _, answer := range w.deps {
		s &^= w.shown[answer][r]
	}
	return s | w.base
}

// readings returns the types that queries read. A query without a type reads all types.
func (w *walker) readings(queries []dag.Query) (out []reading) {
	for _, q := range queries {
		if t := q.Type(); t != nil {
			out = append(out, reading{t.Name(), !q.IsNearest()})
			if q.IsInner() {
				out = append(out, reading{talk(t.Name()), false})
			}
			continue
		}
		for name := range w.ever {
			out = append(out, reading{name, !q.IsLatest()})
		}
	}
	return out
}

// talk returns the name under which the marks of an agent's conversation are stored. The conversation is part of the agent's
// node, in addition to its content.
func talk(name string) string { return name + " conversation" }

func (w *walker) read(readings []reading) set {
	s := w.base
	for _, r := range readings {
		s |= w.of(r)
	}
	return s
}

// write records that a step produces a node.
func (w *walker) write(name string, s set, way string) {
	w.near[name] = s
	w.ever[name] |= s
	w.types[name] |= s
	w.failing[name] |= s
	delete(w.shown, name)
	for _, shown := range w.shown {
		delete(shown, reading{name, false})
		delete(shown, reading{name, true})
	}
	if w.ways[name] == nil {
		w.ways[name] = map[int]string{}
	}
	for ; s != 0; s &= s - 1 {
		if i := bits.TrailingZeros64(uint64(s)); w.ways[name][i] == "" {
			w.ways[name][i] = way
		}
	}
}

// add is like write, for a node that is possibly not produced.
func (w *walker) add(name string, s set, way string) {
	before := w.near[name]
	w.write(name, s, way)
	w.near[name] |= before
}

// way returns a description of the path on which text with a mark in s reaches a step that reads the types. It ends with the name
// of the step.
func (w *walker) way(s set, readings []reading, name string) string {
	for _, r := range readings {
		for rest := s & w.of(r); rest != 0; rest &= rest - 1 {
			if way := w.ways[r.typ][bits.TrailingZeros64(uint64(rest))]; way != "" {
				return way + " → " + name
			}
		}
	}
	return name
}

// acting is the Detail of an agent, whose tools act during the run. Tools that its provider hosts act within a turn, before the
// agent is notified.
type acting interface {
	Acts(yield func(name string, effects []string) bool)
	Hosted() bool
}

// calling is the Detail of a call.
type calling interface {
	Candidates(yield func(id string, needs []string) bool)
	Checks() []string
}

// sources returns the marks of text that an ashlar itself obtains, through its effects, its tools and its capabilities.
func (p *policy) sources(a stone.Ashlar) (s set) {
	if a.Form() == "leaf" {
		s = p.from(a.Name(), a.Effects())
		switch d := a.Detail().Value.(type) {
		case acting:
			for name, effects := range d.Acts {
				if s |= p.from(name, effects); effects == nil {
					s |= p.all()
				}
			}
		case calling:
			for id, needs := range d.Candidates {
				s |= p.from(id, needs)
			}
		}
	}
	if t := a.Produces(); t != nil {
		s |= p.from(t.Name(), nil)
	}
	for _, c := range a.Children() {
		s |= p.sources(c)
	}
	return s
}

// leaf walks a leaf.
func (w *walker) leaf(a stone.Ashlar, path string) {
	outer := w.deps
	for _, q := range a.Queries() {
		if t := q.Type(); t != nil {
			w.deps = append(slices.Clip(w.deps), t.Name())
		}
	}
	readings := w.readings(a.Queries())
	s := w.read(readings)
	w.reads[a] |= s
	w.check(a, path, s, readings)
	brought := w.sources(a)
	way := w.way(s, readings, a.Name())
	if brought&^s != 0 {
		way = a.Name()
	}
	s |= brought
	if len(a.Children()) > 0 {
		w.inside(a, path, s)
	}
	w.deps = outer
	w.add(dag.Failure.Name(), s, way)
	if out := a.Produces(); out != nil {
		w.produce(a, out, s, readings, way)
	}
}

// produce records a leaf's node and the marks that the leaf lifts. Text from which a plan was made remains marked, because the
// plan chooses the names in it.
func (w *walker) produce(a stone.Ashlar, out dag.AnyType, s set, readings []reading, way string) {
	names := []string{a.Name()}
	if d, ok := a.Detail().Value.(calling); ok {
		names = append(names, d.Checks()...)
	}
	_, asks := a.Question()
	if asks {
		names, s = append(names, byPerson), 0
	}
	lifted := w.lifted(names...)
	free := lifted
	d := a.Detail().Value
	if _, agent := d.(acting); agent {
		w.write(talk(out.Name()), s, way)
	}
	if _, call := d.(calling); closedType(out.Schema(), call) {
		free |= w.lifted(byList)
	}
	w.write(out.Name(), s&^free|w.base, way)
	switch guards := a.Detail().Guards; {
	case lifted == 0 || !asks && !guards:
	case guards && w.flows == 0:
		w.lift(readings, lifted)
	default:
		shown := map[reading]set{}
		for _, r := range readings {
			shown[r] = lifted
		}
		w.shown[out.Name()] = shown
	}
}

// lift removes marks from the types that were read.
func (w *walker) lift(readings []reading, s set) {
	for _, r := range readings {
		if w.near[r.typ] &^= s; r.all {
			w.ever[r.typ] &^= s
		}
	}
}

// check adds a finding for each effect of a leaf that the marks of its inputs do not allow. The tools of an agent are checked
// only when they are called.
func (w *walker) check(a stone.Ashlar, path string, s set, readings []reading) {
	agent, _ := a.Detail().Value.(acting)
	var missing []string
	if agent != nil && agent.Hosted() {
		s |= w.sources(a)
		missing = grants.Missing([]string{effect.Net}, w.may(s))
	}
	if s == 0 || w.quiet > 0 {
		return
	}
	grant := w.may(s)
	if agent == nil {
		missing = grants.Missing(a.Effects(), grant)
	}
	if of := a.Detail().CheckGrant; of != nil {
		for _, f := range of(grant) {
			missing = append(missing, f.Queried)
		}
	}
	for _, e := range missing {
		bad := w.forbids(s, []string{e})
		f := stone.Finding{Type: "marked-text", Ashlar: a.Name(), Path: path, Queried: e, Message: fmt.Sprintf(
			"text with the mark %s reaches the effect %q: %s; let a person or a check lift the mark before, or add the effect to what the text may reach",
			list(w.named(bad)), e, w.way(bad, readings, a.Name()))}
		if !slices.Contains(w.found, f) {
			w.found = append(w.found, f)
		}
	}
}

func list(names []string) string { return strings.Join(names, ", ") }

// pathOf returns the path of an ashlar below another, in the notation of Validate.
func pathOf(up string, a stone.Ashlar, nth int) string {
	if up == "" {
		return address.Escape(a.Name())
	}
	return address.Child(up, a.Name(), nth)
}
