package stone

import (
	"fmt"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
)

// A Walk is the rule by which an ashlar's children are read without being run:
// by the validator and by Paths. It calls the methods of w in the order in which
// the body runs the children, and names each of them.
type Walk func(w *Walker)

// WalkInOrder is the walk rule of a body that runs each child once, in order.
var WalkInOrder Walk = func(w *Walker) { w.InOrder(w.Children()...) }

// A Walker notes what a walk rule says.
type Walker struct {
	spec     *spec
	blocks   []block
	named    map[*spec]bool // of the children
	problems []string
}

// block is one thing that a walk rule says.
type block struct {
	how      how
	children []Ashlar
}

type how uint8

const (
	inOrder how = iota
	exactlyOne
	inOrderOrNot
	again
	apart
	reading
)

// Children returns the children of the ashlar.
func (w *Walker) Children() []Ashlar { return slices.Clone(w.spec.children) }

// InOrder says that the children run one after the other.
func (w *Walker) InOrder(children ...Ashlar) { w.add(inOrder, children) }

// OneOf says that exactly one of the children runs.
func (w *Walker) OneOf(children ...Ashlar) { w.add(exactlyOne, children) }

// Perhaps says that the children run in order, or not at all.
func (w *Walker) Perhaps(children ...Ashlar) { w.add(inOrderOrNot, children) }

// Repeat says that the children run in order, at least once.
func (w *Walker) Repeat(children ...Ashlar) { w.add(again, children) }

// Lanes says that the children run apart from each other, each on the DAG as it
// is now, that all of them must survive, and that their nodes are then found by
// All, as dag.Join has it.
func (w *Walker) Lanes(children ...Ashlar) { w.add(apart, children) }

// Reads says that the body itself reads here what its Queries name. A rule that
// does not say so has it read before the first child.
func (w *Walker) Reads() { w.blocks = append(w.blocks, block{how: reading}) }

func (w *Walker) add(how how, children []Ashlar) {
	children = slices.Clone(children)
	for i, c := range children {
		own, ok := w.spec.child(c)
		if !ok {
			w.problems = append(w.problems, fmt.Sprintf("its walk rule names %q, which is none of its children: list it among them", c.Name()))
			return
		}
		children[i], w.named[own.s] = own, true
	}
	if len(children) > 0 {
		w.blocks = append(w.blocks, block{how, children})
	}
}

// blocks asks the walk rule of s what it says, and what is wrong with it; then
// the children are taken in order.
func (s *spec) blocks() (blocks []block, problems []string) {
	w := &Walker{spec: s, named: make(map[*spec]bool, len(s.children))}
	for _, c := range s.children {
		w.named[c.s] = false
	}
	w.ask()
	if len(w.problems) > 0 {
		w.blocks = []block{{inOrder, s.children}}
	}
	if !slices.ContainsFunc(w.blocks, func(b block) bool { return b.how == reading }) {
		w.blocks = slices.Insert(w.blocks, 0, block{how: reading})
	}
	return w.blocks, w.problems
}

// ask calls the walk rule and notes what is wrong with it.
func (w *Walker) ask() {
	defer func() {
		if p := recover(); p != nil {
			w.problems = append(w.problems, fmt.Sprintf("its walk rule panicked: %v", p))
		}
	}()
	if w.spec.walk == nil {
		w.problems = append(w.problems, "its walk rule is nil: give it one, as WalkInOrder")
		return
	}
	w.spec.walk(w)
	if len(w.problems) > 0 {
		return
	}
	for _, c := range w.spec.children {
		if !w.named[c.s] {
			w.problems = append(w.problems, fmt.Sprintf("its walk rule leaves out its child %q: say how it is run", c.Name()))
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
	if s.out == nil || s.out.Name() == "" {
		v.find(v.here, finding.Finding{Type: finding.BadType}, "it does not say what it produces: give it a dag.Type, as dag.NewType makes it")
		return
	}
	if len(s.children) > 0 {
		v.inside(s)
	}
	v.writes(s.out)
}

// inside walks the children of a leaf. They see its draft, and leave nothing
// behind.
func (v *validator) inside(s *spec) {
	last, gains, m := v.last, len(v.gains), v.begin()
	v.helpers++
	v.writes(s.out)
	v.byRule(s)
	v.unreduced(fmt.Sprintf("the body of %q", s.name))
	v.helpers--
	v.end(m)
	v.gains, v.last = v.gains[:gains], last
}

func (v *validator) scoped(s *spec) {
	if len(v.pending) > 0 {
		v.unreduced(fmt.Sprintf("%q", s.name))
	}
	v.byRule(s)
}

// byRule walks the children as their walk rule says.
func (v *validator) byRule(s *spec) {
	blocks, problems := s.blocks()
	for _, problem := range problems {
		v.find(v.here, finding.Finding{Type: finding.BadWalk}, "%s", problem)
	}
	for _, b := range blocks {
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
			// Whether the body marks its lanes is not known.
			start := latest{there: v.last.there, ways: &ways{of: []latest{v.last}}}
			v.fan(start, len(b.children), len(b.children), func(i int) { v.visit(b.children[i], i) })
		case reading:
			if s.form == scopedForm {
				v.reads(s)
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

// repeat walks a round that runs once or more.
func (v *validator) repeat(round func()) {
	first, from := v.last, len(v.unmet)
	before := &ways{of: []latest{first}, loop: true}
	v.last = latest{there: first.there, lanes: first.lanes, ways: before}
	round()
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

// either walks several ways from the state at hand and goes on with what they
// share.
func (v *validator) either(n int, walk func(i int)) {
	if n == 0 {
		return
	}
	last, pending, from := v.last, v.pending, len(v.gains)
	lasts := make([]latest, n)
	var left []*place
	for i := range n {
		v.last, v.pending = last, pending
		m := v.begin()
		walk(i)
		v.end(m)
		lasts[i] = v.last
		left = append(left, v.pending...)
	}
	v.joinWays(from, n)
	v.last, v.pending = oneOf(lasts), left
}

func (v *validator) mapItems(s *spec) {
	v.reads(s)
	if s.out == nil || s.out.Name() == "" {
		v.find(v.here, finding.Finding{Type: finding.BadType}, "it does not say what its items are: give Map a dag.Type, as dag.NewType makes it")
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
		v.find(v.here, finding.Finding{Type: finding.BadOption}, "Quorum(%d): want at most %d, there are no more lanes", s.quorum, n)
	}
	v.fan(latest{there: surely, typ: laneType}, n, s.survivors(n), func(i int) { v.visit(s.children[i], i) })
}

// mayLose notes a fan-out of which lanes can be lost without anybody saying so.
func (v *validator) mayLose(s *spec) {
	if s.allLanes || s.quorum > 0 || len(s.children) == 0 {
		return
	}
	if slices.ContainsFunc(s.children, func(lane Ashlar) bool { return lane.spec().form != rescueForm }) {
		v.silent = append(v.silent, v.here)
	}
}

// lossesUnsaid warns of the fan-outs that may lose lanes, unless somebody reads
// which failures there were.
func (v *validator) lossesUnsaid() {
	if v.failuresRead {
		return
	}
	for _, at := range v.silent {
		v.find(at, finding.Finding{Type: finding.LanesMayBeLost, Warning: true},
			"a lane that fails is dropped, and the others are the result: say AllLanes or Quorum(n), make its body a Rescue, or read the failures with dag.Lost")
	}
}

// reduce walks the body of a Reduce.
func (v *validator) reduce(s *spec) {
	if len(v.pending) == 0 && v.last.typ != nil && !v.last.lanes {
		v.find(v.here, finding.Finding{Type: finding.NothingToReduce, Warning: true},
			"no fan-out comes before it: put one in front, or use its body without Reduce")
	}
	v.pending = nil
	v.children(s)
}

// fan walks lanes that do not see each other, of which some number survives.
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
	v.pending = []*place{v.here}
	v.last = latest{there: surely, lanes: true, ways: &ways{of: lasts}}
}

// rescue walks body, and heal after a body of which only parts may have run.
func (v *validator) rescue(s *spec) {
	from := len(v.gains)
	v.either(2, func(i int) {
		if i == 1 {
			v.perhaps(v.gains[from:])
			v.pending = nil
			v.set(v.id(dag.Failure.Name()), surely, surely)
			v.last = latest{there: surely, typ: dag.Failure}
		}
		v.visit(s.children[i], i)
	})
}
