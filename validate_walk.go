package stone

import (
	"fmt"
	"iter"
	"slices"

	"github.com/stonelayer/stone/dag"
)

// A Walk declares which children a body runs and in which order, because the validator and package tree do not run the body. Each
// method returns a copy of the walk with one more part:
//
//	stone.Walk{}.InOrder(draft).OneOf(short, long).Writes(Verdict)
//
// Without Reads, the body reads its declared queries before the first child.
type Walk struct{ blocks []block }

// block is one part of a walk.
type block struct {
	how      how
	children []Ashlar
	types    []dag.AnyType // for a block of Writes
}

type how uint8

const (
	inOrder how = iota
	exactlyOne
	inOrderOrNot
	again
	apart
	reading
	writing
)

var howNames = [...]string{"in-order", "one-of", "perhaps", "repeat", "lanes", "reads", "writes"}

// InOrder adds children that run one after the other.
func (w Walk) InOrder(children ...Ashlar) Walk { return w.add(inOrder, children) }

// OneOf adds alternatives: exactly one of the children runs.
func (w Walk) OneOf(children ...Ashlar) Walk { return w.add(exactlyOne, children) }

// Perhaps adds children that either all run in order, or do not run at all.
func (w Walk) Perhaps(children ...Ashlar) Walk { return w.add(inOrderOrNot, children) }

// Repeat adds children that run in order, one or more times.
func (w Walk) Repeat(children ...Ashlar) Walk { return w.add(again, children) }

// Lanes adds children that run independently of each other, each on the DAG at this
// point. All of them must succeed. Afterwards dag.All finds their nodes, as after
// dag.Join.
func (w Walk) Lanes(children ...Ashlar) Walk { return w.add(apart, children) }

// Reads adds the point at which the body reads its declared queries.
func (w Walk) Reads() Walk { return w.with(block{how: reading}) }

// Writes adds the point at which the body itself appends one node per type, in this order, so that later steps can read them.
// Nodes that children append need not be declared.
func (w Walk) Writes(types ...dag.AnyType) Walk {
	if len(types) == 0 {
		return w
	}
	return w.with(block{how: writing, types: slices.Clone(types)})
}

func (w Walk) add(how how, children []Ashlar) Walk {
	if len(children) == 0 {
		return w
	}
	return w.with(block{how: how, children: slices.Clone(children)})
}

func (w Walk) with(b block) Walk { return Walk{append(slices.Clip(w.blocks), b)} }

func (w Walk) hasWrites() bool {
	return slices.ContainsFunc(w.blocks, func(b block) bool { return b.how == writing })
}

// writes returns an iterator over the types of the nodes that the body itself appends.
func (w Walk) writes() iter.Seq[dag.AnyType] {
	return func(yield func(dag.AnyType) bool) {
		for _, b := range w.blocks {
			for _, t := range b.types {
				if t != nil && !yield(t) {
					return
				}
			}
		}
	}
}

// children returns the children in the walk, without duplicates.
func (w Walk) children() []Ashlar {
	var out []Ashlar
	seen := map[*spec]bool{}
	for _, b := range w.blocks {
		for _, c := range b.children {
			if !seen[c.s] {
				seen[c.s] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// blocks returns the parts of the walk of s, with its current children.
func (s *spec) blocks() []block {
	blocks := make([]block, 0, len(s.walk.blocks)+1)
	reads := false
	for _, b := range s.walk.blocks {
		reads = reads || b.how == reading
		now := block{b.how, make([]Ashlar, len(b.children)), b.types}
		for i, c := range b.children {
			now.children[i], _ = s.child(c)
		}
		blocks = append(blocks, now)
	}
	if !reads {
		blocks = slices.Insert(blocks, 0, block{how: reading})
	}
	return blocks
}

// Walk returns an iterator over the parts of a Walk, which a Scoped or a leaf with Children has. It yields the name of each part,
// "in-order", "one-of", "perhaps", "repeat", "lanes", "reads" or "writes", and the part's children. For any other ashlar, the
// iterator yields nothing.
func (a Ashlar) Walk() iter.Seq2[string, []Ashlar] {
	return func(yield func(string, []Ashlar) bool) {
		s := a.spec()
		if s.form != scopedForm && s.form != leafForm {
			return
		}
		for _, b := range s.blocks() {
			if !yield(howNames[b.how], b.children) {
				return
			}
		}
	}
}

func (v *validator) children(s *spec) { v.inOrder(s.children) }

func (v *validator) inOrder(children []Ashlar) {
	for i, c := range children {
		v.visit(c, i)
	}
}

func (v *validator) leaf(s *spec) {
	if s == noAshlar {
		return
	}
	v.reads(s)
	if !v.named(s.out) {
		return
	}
	if len(s.children) > 0 {
		v.inside(s)
	}
	v.writes(s.out)
}

// named reports whether t is a type with a name. If it is not, named adds a finding.
func (v *validator) named(out dag.AnyType) bool {
	if out == nil || out.Name() == "" {
		v.find(v.here, Finding{Type: "bad-type"}, "it does not declare what it produces: give it a dag.Type made by dag.NewType with a name")
		return false
	}
	return true
}

// inside walks the children of a leaf. They run on the leaf's draft, and their own nodes are dropped.
func (v *validator) inside(s *spec) {
	last, gains, rounds, m := v.last, len(v.gains), v.rounds, v.begin()
	v.rounds = 0 // the nodes of a leaf's children are dropped in each round
	v.helpers++
	if !s.walk.hasWrites() {
		v.writes(s.out)
	}
	v.byRule(s)
	v.unreduced(fmt.Sprintf("the body of %q", s.name))
	v.helpers--
	v.end(m)
	v.gains, v.last, v.rounds = v.gains[:gains], last, rounds
}

// byRule walks the children in the order that the Walk of s declares.
func (v *validator) byRule(s *spec) {
	for _, b := range s.blocks() {
		switch b.how {
		case inOrder:
			v.inOrder(b.children)
		case exactlyOne:
			v.either(len(b.children), func(i int) { v.visit(b.children[i], i) })
		case inOrderOrNot:
			v.either(2, func(i int) { v.inOrder(b.children[:len(b.children)*(1-i)]) })
		case again:
			v.repeat(func() { v.inOrder(b.children) })
		case apart:
			// Whether the body marks its lanes is unknown.
			start := latest{there: v.last.there, ways: &ways{of: []latest{v.last}}}
			v.fan(start, len(b.children), len(b.children), func(i int) { v.visit(b.children[i], i) })
		case reading:
			if s.form == scopedForm {
				v.reads(s)
			}
		case writing:
			if len(v.pending) > 0 {
				v.unreduced(fmt.Sprintf("%q", s.name))
			}
			for _, t := range b.types {
				if v.named(t) {
					v.writes(t)
				}
			}
		}
	}
}

func (v *validator) loop(s *spec) {
	if s.max == 1 {
		v.children(s)
	} else {
		v.repeat(func() { v.children(s) })
	}
	v.reads(s)
}

// repeat walks a round that runs one or more times.
func (v *validator) repeat(round func()) {
	first, from := v.last, len(v.unmet)
	before := &ways{of: []latest{first}, loop: true}
	v.last = latest{there: first.there, lanes: first.lanes, ways: before}
	v.rounds++
	round()
	v.rounds--
	if len(v.pending) > 0 {
		v.unreduced(fmt.Sprintf("%q at the end of a round", v.here.spec.name))
	}
	v.nextRound(from)
	for _, at := range before.lenses {
		v.lens(at, first)
		if v.last.typ != first.typ {
			v.lens(at, v.last)
		}
	}
	before.of = append(before.of, v.last)
	if before.read {
		v.markRead(v.last)
	}
}

// either walks each alternative from the current state, and then continues with the facts that all of them have in common.
func (v *validator) either(n int, walk func(i int)) {
	if n == 0 {
		return
	}
	last, pending, from := v.last, v.pending, len(v.gains)
	lasts := make([]latest, n)
	var left []*place
	bareBefore, bare := v.bare, false
	for i := range n {
		v.last, v.pending, v.bare = last, pending, bareBefore
		m := v.begin()
		walk(i)
		v.end(m)
		lasts[i] = v.last
		left = append(left, v.pending...)
		bare = bare || v.bare || len(v.pending) == 0
	}
	v.joinWays(from, n)
	v.last, v.pending, v.bare = oneOf(lasts), left, bare
}

func (v *validator) mapItems(s *spec) {
	v.reads(s)
	if s.out == nil || s.out.Name() == "" {
		v.find(v.here, Finding{Type: "bad-type"}, "it does not declare the type of its items: give Map a dag.Type made by dag.NewType")
		return
	}
	v.mayLose(s)
	id := v.id(s.out.Name())
	v.declare(id, s.out)
	v.fan(latest{there: surely, typ: s.out}, 1, 1, func(int) {
		v.set(id, surely, surely)
		v.children(s)
	})
}

func (v *validator) parallel(s *spec) {
	v.reads(s)
	v.mayLose(s)
	n := len(s.children)
	if n > 0 && s.quorum > n {
		v.find(v.here, Finding{Type: "bad-option"}, "Quorum(%d): want at most %d, the number of lanes", s.quorum, n)
	}
	v.fan(latest{there: surely, typ: laneType}, n, s.survivors(n), func(i int) { v.visit(s.children[i], i) })
}

// mayLose records the current place as a fan-out that can lose lanes without declaring it.
func (v *validator) mayLose(s *spec) {
	if s.allLanes && s.quorum > 0 {
		v.find(v.here, Finding{Type: "bad-option"}, "AllLanes and Quorum(%d) cannot be combined: leave one out", s.quorum)
	}
	if s.allLanes || s.quorum > 0 || len(s.children) == 0 {
		return
	}
	if slices.ContainsFunc(s.children, func(lane Ashlar) bool { return lane.spec().form != rescueForm }) {
		v.silent = append(v.silent, v.here)
	}
}

// silentLosses adds a warning for each recorded fan-out that can lose lanes, unless a query reads all failures.
func (v *validator) silentLosses() {
	if v.failuresRead {
		return
	}
	for _, at := range v.silent {
		v.find(at, Finding{Type: "lanes-may-be-lost", Warning: true},
			"a lane that fails is dropped, and the others are the result: set AllLanes or Quorum(n), make its body a Rescue, or read the failures with dag.Lost")
	}
}

// reduce walks the body of a Reduce with the pending fan-outs that it joins.
func (v *validator) reduce(s *spec) {
	if len(v.pending) == 0 && v.last.typ != nil && !v.last.lanes {
		v.find(v.here, Finding{Type: "nothing-to-reduce", Warning: true},
			"no fan-out comes before it: add one, or use its body without Reduce")
	}
	outer := v.closes
	if v.closes = nil; len(v.pending) > 0 {
		v.closes = &closing{fans: v.pending, always: !v.bare}
	}
	v.pending = nil
	v.children(s)
	v.closes = outer
}

// fan walks n concurrent lanes, each from the current state. At least survivors of them succeed.
func (v *validator) fan(start latest, n, survivors int, walk func(i int)) {
	if n == 0 {
		return
	}
	if len(v.pending) > 0 {
		v.unreduced(fmt.Sprintf("%q", v.here.spec.name))
	}
	from := len(v.gains)
	lasts := make([]latest, n)
	for i := range n {
		v.last = start
		m := v.begin()
		walk(i)
		v.unreduced("the fan-out around it")
		v.end(m)
		lasts[i] = v.last
	}
	v.joinLanes(from, n, survivors)
	v.here.rounds = v.rounds
	v.pending, v.bare = []*place{v.here}, false
	v.last = latest{there: surely, lanes: true, ways: &ways{of: lasts}}
}

// rescue walks the body and then heal, which can run after only a part of the body has run.
func (v *validator) rescue(s *spec) {
	from := len(v.gains)
	v.either(2, func(i int) {
		if i == 1 {
			f := &v.facts
			for _, g := range v.gains[from:] {
				e := &f.entries[g.id]
				line, all := max(e.line, min(g.line, maybe)), max(e.all, min(g.all, maybe))
				if line != e.line || all != e.all {
					f.set(g.id, line, all)
				}
			}
			v.pending = nil
			v.set(v.id(dag.Failure.Name()), surely, surely)
			v.last = latest{there: surely, typ: dag.Failure}
		}
		v.visit(s.children[i], i)
	})
}
