package stone

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/stonelayer/stone/dag"
)

// A course describes the order of a flow: for each step, the earlier steps for which it waits. It is computed before the flow
// runs.
type course struct {
	stages  []stage // the steps, followed by the gates
	steps   int
	inOrder bool // whether every step waits for the previous one, as in a sequence
}

// A stage is a step or a gate. A gate stands for several steps that other steps wait for together. Without gates, every reader of
// a type would need an edge to each writer of the type; with gates, each read or write needs about one edge.
type stage struct {
	deps  []int32 // the stages for which the stage waits
	gates []int32 // the gates that wait for the stage
	all   bool    // whether the stage waits for every earlier step; deps is then unused
	sees  stepSet // the steps that the stage sees: deps and every step that these see
	from  int32   // the step whose result, or the gate whose view, this stage's view extends; -1 if there is none
	cut   int     // the first step missing from the result or view of from
}

// traits are the properties of a step that determine the steps for which it waits.
type traits struct {
	reads, writes []string
	all           bool // the step must see all nodes before it
	any           bool // the step may write nodes of any type
	matches       bool // the step tests whether the DAG is empty
}

// traitsOf returns the combined traits of a and its descendants. A fan-out sees everything, because its lanes cannot move within
// the DAG; a scoped body may do anything with its DAG.
func traitsOf(a Ashlar) (t traits) {
	t.of(a.spec(), false)
	return t
}

// of adds the traits of s. The heal of a Rescue reads the failure of its body, which is the nearest failure, so it need not wait
// for earlier failures.
func (t *traits) of(s *spec, heals bool) {
	for _, q := range s.queries {
		t.all = t.all || q.Type() == nil
		if own := heals && q.IsNearest() && q.Type() != nil && q.Type().Name() == dag.Failure.Name(); !own {
			t.reads = withName(withName(t.reads, q.Type()), q.After())
		}
	}
	t.writes = withName(t.writes, s.out)
	switch s.form {
	case matchForm:
		t.matches = true
	case reduceForm:
		t.all = true
	case rescueForm:
		t.writes = withName(t.writes, dag.Failure)
	case scopedForm:
		t.all, t.any = true, true
	case mapForm, parallelForm:
		t.all = true
		t.writes = withName(withName(t.writes, dag.Failure), laneType) // includes failures of lost lanes, and lane markers
	}
	for i, c := range s.children {
		t.of(c.spec(), heals || s.form == rescueForm && i == 1)
	}
}

func withName(names []string, t dag.AnyType) []string {
	if t == nil || slices.Contains(names, t.Name()) {
		return names
	}
	return append(names, t.Name())
}

// course returns the course of a flow.
func (s *spec) course() *course {
	f := s.found()
	f.courseOnce.Do(func() { f.course = survey(s.children) })
	return f.course
}

// surveyor builds a course step by step.
type surveyor struct {
	course
	writers map[string][]int32 // for each type, the stages that together include all earlier writers of the type
	others  []int32            // the stages that include all earlier writers of any other type
}

func survey(steps []Ashlar) *course {
	v := &surveyor{course: course{stages: make([]stage, len(steps)), steps: len(steps), inOrder: true}, writers: map[string][]int32{}}
	for i, a := range steps {
		v.step(i, traitsOf(a))
		v.inOrder = v.inOrder && v.stages[i].sees.len() == i
	}
	return &v.course
}

func (v *surveyor) step(i int, t traits) {
	v.stages[i].from = -1
	if t.all {
		v.stages[i].all, v.stages[i].sees = true, firstSteps(i)
	} else {
		var deps []int32
		for _, name := range t.reads {
			for _, d := range v.writersOf(name) {
				if !slices.Contains(deps, d) {
					deps = append(deps, d)
				}
			}
		}
		if t.matches && len(deps) == 0 && i > 0 {
			deps = []int32{int32(i - 1)}
		}
		v.stages[i].deps = deps
		v.look(i)
	}
	for _, name := range t.writes {
		before, known := v.writers[name]
		switch {
		case t.all || slices.Contains(t.reads, name): // the stage waits for the writers before it
			before = nil
		case !known:
			before = slices.Clone(v.others)
		}
		v.writers[name] = append(before, int32(i))
	}
	if t.any {
		clear(v.writers)
		v.others = []int32{int32(i)}
	}
}

// writersOf returns the stages that together include all earlier writers of a type. If there are several writers, it returns a
// gate.
func (v *surveyor) writersOf(name string) []int32 {
	of, known := v.writers[name]
	if !known {
		return v.others
	}
	if len(of) > 1 {
		gate := len(v.stages)
		v.stages = append(v.stages, stage{deps: of})
		for _, member := range of {
			v.stages[member].gates = append(v.stages[member].gates, int32(gate))
		}
		v.look(gate)
		of = []int32{int32(gate)}
		v.writers[name] = of
	}
	return of
}

// look sets the steps that a stage sees.
func (v *surveyor) look(i int) {
	at := &v.stages[i]
	at.from = -1
	for _, d := range at.deps {
		at.sees = at.sees.union(v.stages[d].sees)
		if int(d) < v.steps {
			at.sees = at.sees.with(int(d))
		}
	}
	longest := 0
	try := func(d int) {
		n, cut := v.stages[d].sees.len(), v.stages[d].sees.last()+1
		if d < v.steps {
			n, cut = n+1, d+1
		}
		if n > longest && at.sees.before(cut) == n {
			longest, at.from, at.cut = n, int32(d), cut
		}
	}
	for _, d := range at.deps {
		try(int(d))
	}
	if last := at.sees.last(); last >= 0 {
		try(last)
	}
}

// A stepSet is a set of steps. Most sets contain every step up to some index, which is stored as one number.
type stepSet struct {
	full  int      // the first 64*full steps are all in the set
	words []uint64 // one bit for each further step; the last word is not zero
}

// firstSteps returns the set of the first n steps.
func firstSteps(n int) stepSet {
	s := stepSet{full: n / 64}
	if n%64 > 0 {
		s.words = []uint64{1<<(n%64) - 1}
	}
	return s
}

func (s stepSet) union(o stepSet) stepSet {
	if s.full < o.full {
		s, o = o, s
	}
	more := o.words[min(len(o.words), s.full-o.full):]
	if len(more) == 0 {
		return s
	}
	words := make([]uint64, max(len(s.words), len(more)))
	copy(words, s.words)
	for i, w := range more {
		words[i] |= w
	}
	return stepSet{s.full, words}.trimmed()
}

func (s stepSet) with(i int) stepSet {
	at := i/64 - s.full
	if at < 0 {
		return s
	}
	words := make([]uint64, max(len(s.words), at+1))
	copy(words, s.words)
	words[at] |= 1 << (i % 64)
	return stepSet{s.full, words}.trimmed()
}

func (s stepSet) trimmed() stepSet {
	for len(s.words) > 0 && s.words[0] == ^uint64(0) {
		s.full, s.words = s.full+1, s.words[1:]
	}
	return s
}

func (s stepSet) has(i int) bool {
	at := i/64 - s.full
	return at < 0 || at < len(s.words) && s.words[at]&(1<<(i%64)) != 0
}

func (s stepSet) len() int {
	n := 64 * s.full
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// before returns the number of steps in the set with an index below i.
func (s stepSet) before(i int) int {
	at := i/64 - s.full
	if at < 0 {
		return i
	}
	n := 64 * s.full
	for k, w := range s.words[:min(len(s.words), at+1)] {
		if k == at {
			w &= 1<<(i%64) - 1
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// last returns the last step of the set, or -1 if it is empty.
func (s stepSet) last() int {
	if n := len(s.words); n > 0 {
		return 64*(s.full+n) - 1 - bits.LeadingZeros64(s.words[n-1])
	}
	return 64*s.full - 1
}

// start returns the largest n for which the set contains the first n steps.
func (s stepSet) start() int {
	if len(s.words) == 0 {
		return 64 * s.full
	}
	return 64*s.full + bits.TrailingZeros64(^s.words[0])
}

// since returns an iterator over the steps of the set, starting at step i.
func (s stepSet) since(i int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for last := s.last(); i <= last; i++ {
			if s.has(i) && !yield(i) {
				return
			}
		}
	}
}
