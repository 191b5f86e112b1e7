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

// state has the marks known at a point of a pipeline.
type state struct {
	near, ever map[string]set // of the nearest node of each type, and of all its nodes
	// shown maps the type of an answer to the types shown in its question and the marks that the answer lifts.
	shown map[string]map[reading]set
}

// reading is one way to read a type.
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

// walker walks a pipeline as a run does, over the marks of types in place of nodes.
type walker struct {
	*policy
	state
	base    set                  // of a plan: of the text that it was made from
	unknown set                  // of types that the pipeline does not make
	deps    []string             // types that the enclosing branches depend on
	flows   int                  // number of enclosing flows, whose steps do not wait for each other
	quiet   int                  // number of enclosing agents, whose tools are checked when called
	reads   map[stone.Ashlar]set // see place
	types   map[string]set
	failing map[string]set            // marks of types within the body of a rescue
	ways    map[string]map[int]string // by type and mark: the steps that the text came through
	found   stone.Findings
}

func newWalker(p *policy) *walker {
	return &walker{policy: p, state: state{map[string]set{}, map[string]set{}, map[string]map[reading]set{}}, reads: map[stone.Ashlar]set{}, types: map[string]set{}, failing: map[string]set{}, ways: map[string]map[int]string{}}
}

// within prepares the walk of a pipeline that a body runs. A pipeline of the program gets marked text as its input; one
// that was made during the run is itself such text.
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

// of returns the marks of the text that a reader of a type gets.
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

// readings returns the types that are read. A query without a type reads all.
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

// talk is the name for the marks of the conversation that an agent's node has beside its content.
func talk(name string) string { return name + " conversation" }

func (w *walker) read(readings []reading) set {
	s := w.base
	for _, r := range readings {
		s |= w.of(r)
	}
	return s
}

// write notes that a step produces a node.
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

// add is write for a node that may not be produced.
func (w *walker) add(name string, s set, way string) {
	before := w.near[name]
	w.write(name, s, way)
	w.near[name] |= before
}

// way returns how text with a mark of s came to a step that reads the types, and the step.
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

// acting is the Detail of an agent, whose tools act during the run. Tools hosted by its provider act within a turn, before the
// agent is told.
type acting interface {
	Acts(yield func(name string, effects []string) bool)
	Hosted() bool
}

// calling is the Detail of a call.
type calling interface {
	Candidates(yield func(id string, needs []string) bool)
	Checks() []string
}

// sources returns the marks of the text that p itself brings in.
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

// produce notes a leaf's node and the marks that the leaf lifts. Text that a plan was made from stays marked, because the plan
// chooses its names.
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

// check reports effects of a leaf that the marks of its inputs do not allow. An agent's tools are checked when they are called.
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

// pathOf returns the path of a below another, as Validate writes it.
func pathOf(up string, a stone.Ashlar, nth int) string {
	if up == "" {
		return address.Escape(a.Name())
	}
	return address.Child(up, a.Name(), nth)
}
