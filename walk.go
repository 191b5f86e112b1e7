package stone

import (
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// A Walk is the rule by which the validator reads the children of a Scoped
// ashlar. It calls the methods of w in the order in which the body runs the
// children.
type Walk func(w *Walker)

// WalkInOrder is the walk rule of a body that runs each child once, in order.
var WalkInOrder Walk = func(w *Walker) { w.InOrder(w.Children()...) }

// A Walker walks the children of a Scoped ashlar for the validator.
type Walker struct {
	v *validator
	s *spec
}

// Children returns the children of the ashlar.
func (w *Walker) Children() []Ashlar { return slices.Clone(w.s.children) }

// InOrder says that the children run one after the other.
func (w *Walker) InOrder(children ...Ashlar) { w.v.among(w.s, children, w.v.inOrder) }

// OneOf says that exactly one of the children runs.
func (w *Walker) OneOf(children ...Ashlar) { w.v.among(w.s, children, w.v.oneOf) }

// Perhaps says that the children run in order, or not at all.
func (w *Walker) Perhaps(children ...Ashlar) {
	w.v.among(w.s, children, func(as []Ashlar) {
		w.v.either(func() { w.v.inOrder(as) }, func() {})
	})
}

// Repeat says that the children run in order, at least once.
func (w *Walker) Repeat(children ...Ashlar) { w.v.among(w.s, children, w.v.repeat) }

// Lanes says that the children run apart from each other, each on the DAG as it
// is now, and that their nodes are then found by All.
func (w *Walker) Lanes(children ...Ashlar) {
	w.v.among(w.s, children, func(as []Ashlar) { w.v.lanes(as, true) })
}

// among walks children of s, of which the rule may name only own ones.
func (v *validator) among(s *spec, children []Ashlar, walk func([]Ashlar)) {
	for _, c := range children {
		if v.childIndex(s, c) < 0 {
			v.find(false, "nil-ashlar", "", "", "its walk rule names %q, which is none of its children", c.Name())
			return
		}
	}
	walk(children)
}

func (v *validator) childIndex(s *spec, a Ashlar) int {
	return slices.IndexFunc(s.children, func(c Ashlar) bool { return c.s == a.s })
}

// down walks the i-th of some children of the ashlar at hand.
func (v *validator) down(children []Ashlar, i int) {
	index := i
	if v.here.spec.walk != nil {
		index = v.childIndex(v.here.spec, children[i])
	}
	v.visit(children[i], v.here, index)
}

func (v *validator) inOrder(children []Ashlar) {
	for i := range children {
		v.down(children, i)
	}
}

func (v *validator) scoped(s *spec) {
	v.reads(s)
	if s.walk != nil {
		s.walk(&Walker{v, s})
	}
}

func (v *validator) loop(s *spec) {
	v.repeat(s.children)
	v.reads(s)
}

// repeat walks a body that runs once or more. What only a round before can have
// produced is perhaps there.
func (v *validator) repeat(children []Ashlar) {
	if len(children) == 0 {
		return
	}
	v.perhaps(v.gain(children))
	v.inOrder(children)
}

// perhaps notes what may have been gained, or not.
func (v *validator) perhaps(gained map[string]fact) {
	for name, g := range gained {
		f := v.facts[name]
		later := fact{typ: f.typ, line: max(f.line, min(g.line, maybe)), lanes: max(f.lanes, min(g.lanes, maybe))}
		if later.typ == nil {
			later.typ = g.typ
		}
		if later != f {
			v.set(name, later)
		}
	}
}

// gain returns what one round of the body adds. It is walked on the side, its
// findings are dropped.
func (v *validator) gain(children []Ashlar) map[string]fact {
	body := children[0].spec()
	if len(children) == 1 && v.gains[body] != nil {
		return v.gains[body]
	}
	side := &validator{
		facts: map[string]fact{}, gains: v.gains, queried: map[string]bool{},
		made: map[string]*place{}, asked: map[string]*spec{}, here: v.here,
	}
	side.inOrder(children)
	if len(children) == 1 {
		v.gains[body] = side.facts
	}
	return side.facts
}

func (v *validator) match(s *spec) {
	v.reads(s)
	v.lens(s)
	v.enum(s)
	v.oneOf(s.children)
}

// oneOf walks each child from the state at hand. What all of them leave behind
// is there afterwards, what some do is perhaps there.
func (v *validator) oneOf(children []Ashlar) {
	ways := make([]func(), len(children))
	for i := range children {
		ways[i] = func() { v.down(children, i) }
	}
	v.either(ways...)
}

// either walks each way from the state at hand and goes on with what they share.
func (v *validator) either(ways ...func()) {
	type outcome struct {
		gained map[string]fact
		last   last
	}
	var outcomes []outcome
	var pending *place
	names := map[string]dag.AnyType{}
	for _, way := range ways {
		var o outcome
		o.gained = v.apart(func() {
			way()
			o.last = v.last
			if v.pending != nil {
				pending = v.pending
			}
		})
		for name, f := range o.gained {
			if names[name] == nil {
				names[name] = f.typ
			}
		}
		outcomes = append(outcomes, o)
	}
	for name, typ := range names {
		before := v.facts[name]
		var line, lanes []certainty
		for _, o := range outcomes {
			f, ok := o.gained[name]
			if !ok {
				f = before
			}
			line, lanes = append(line, f.line), append(lanes, f.lanes)
		}
		if before.typ != nil {
			typ = before.typ
		}
		v.set(name, fact{typ: typ, line: shared(line), lanes: shared(lanes)})
	}
	v.pending = pending
	v.last = last{any: true}
	for _, o := range outcomes {
		v.last.types = append(v.last.types, o.last.types...)
		v.last.any = v.last.any && o.last.any
	}
}

// shared is how sure something is after one of several ways was taken.
func shared(ways []certainty) certainty {
	if slices.Min(ways) == slices.Max(ways) {
		return ways[0]
	}
	return maybe
}

func (v *validator) mapItems(s *spec) {
	v.reads(s)
	if s.out == nil {
		return
	}
	if err := s.out.Err(); err != nil {
		v.find(false, "bad-type", s.out.Name(), "", "%v", err)
	}
	v.fan(s, []func(){func() {
		v.set(s.out.Name(), fact{typ: s.out, line: surely})
		v.last = last{types: []dag.AnyType{s.out}, known: true, any: true}
		v.inOrder(s.children)
	}}, true)
}

func (v *validator) lanes(children []Ashlar, all bool) {
	if v.pending != nil {
		v.unreduced(v.here.spec.name)
	}
	ways := make([]func(), len(children))
	for i := range children {
		ways[i] = func() { v.down(children, i) }
	}
	v.fan(v.here.spec, ways, all)
}

// fan walks lanes apart from each other. What they produce is found by All
// afterwards: surely if every lane produces it, or if every lane must survive.
func (v *validator) fan(s *spec, ways []func(), all bool) {
	type tally struct {
		typ  dag.AnyType
		sure int
	}
	found := map[string]tally{}
	var types []dag.AnyType
	for _, way := range ways {
		gained := v.apart(func() {
			way()
			if v.pending != nil {
				v.unreduced("the fan-out around it")
			}
			types = append(types, v.last.types...)
		})
		for name, f := range gained {
			t := found[name]
			if t.typ == nil {
				t.typ = f.typ
			}
			if max(f.line, f.lanes) == surely {
				t.sure++
			}
			found[name] = t
		}
	}
	for name, t := range found {
		before := v.facts[name]
		sure := maybe
		if t.sure == len(ways) || all && t.sure > 0 {
			sure = surely
		}
		if before.typ != nil {
			t.typ = before.typ
		}
		v.set(name, fact{typ: t.typ, line: before.line, lanes: max(before.lanes, sure)})
	}
	v.pending = v.here
	v.last = last{types: types, any: true}
}

// rescue walks body, and heal after a body of which only parts may have run.
func (v *validator) rescue(s *spec) {
	v.either(
		func() { v.down(s.children, 0) },
		func() {
			v.perhaps(v.gain(s.children[:1]))
			v.pending = nil
			v.set(dag.Failure.Name(), fact{typ: dag.Failure, line: surely})
			v.last = last{types: []dag.AnyType{dag.Failure}, known: true, any: true}
			v.down(s.children, 1)
		},
	)
}

// lens checks a lens against the schema of the latest node, where that is known.
func (v *validator) lens(s *spec) {
	if s.lens == nil {
		return
	}
	if !v.last.any {
		v.find(false, "missing-producer", "", "", "it looks into the latest node, but nothing comes before it: put the step that produces it in front")
		return
	}
	if !v.last.known {
		return
	}
	t := v.last.types[0]
	if t.Schema() == nil {
		return
	}
	if _, ok := t.Schema().At(s.lens...); !ok {
		first := ""
		if len(s.lens) > 0 {
			first = s.lens[0]
		}
		v.find(false, "invalid-lens", first, closest(first, t.Schema().Properties()),
			"lens path %q is not in the schema of the latest node, %q", s.lens, t.Name())
	}
}

// enum finds branches that no value of the extractor can select.
func (v *validator) enum(s *spec) {
	var values []any
	var closed bool
	switch {
	case s.enum != nil:
		values, closed = s.enum()
	case s.lens != nil && v.last.known:
		if at, ok := v.last.types[0].Schema().At(s.lens...); ok {
			values, closed = at.Enum()
		}
	}
	if !closed {
		return
	}
	var keys []string
	for _, value := range values {
		key, err := canon.Append(nil, value)
		if err != nil {
			return // such a value selects nothing
		}
		keys = append(keys, string(key))
	}
	for _, key := range s.keys {
		if !slices.Contains(keys, key) {
			v.find(false, "unreachable-branch", key, closest(key, keys),
				"no value selects the branch %s: the values are %q", key, keys)
		}
	}
}
