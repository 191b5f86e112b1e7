package stone

import (
	"github.com/stonelayer/stone/dag"
)

// certainty says whether a node exists when a run reaches a place.
type certainty uint8

const (
	never certainty = iota
	maybe
	surely
)

// fact says whether a node of a type exists at one point of the walk: on the line of
// first parents, where Nearest and Since look, and anywhere, since All also looks into
// the lanes of a fan-out.
type fact struct {
	line, all certainty
	frame     int32 // in which it was set
	since     int32 // the order of the place at which it came to exist
}

// entry has the facts of one type name.
type entry struct {
	name string
	fact
	tally
	written dag.AnyType // the type that is written; nil if only an input DAG has it
	alike   dag.AnyType // another type with the same schema
	writer  *place      // the first writer; nil for the run itself and the input
	given   bool        // the input has it
	product bool        // some leaf produces it for others
	queried bool        // something reads it
}

// origin names the source of a type that nothing in the tree writes.
func (e *entry) origin() string {
	if e.given {
		return "the input has"
	}
	return "the run itself writes"
}

// tally sums up the facts at the ends of several ways.
type tally struct {
	ways, sure       int32
	minLine, maxLine certainty
	minAll, maxAll   certainty
}

// facts is the state of the walk. Ways that exclude each other, or do not see
// each other, are walked one after the other from the same state, each in a
// frame. The end of a frame reverts its changes and keeps them as gains. Nothing is
// copied, so a walk is linear however deeply its frames are nested.
type facts struct {
	ids     map[string]int
	entries []entry
	trail   []gain // the earlier facts, for the open frames
	gains   []gain // the changes of ended frames that are not joined yet
	frame   int32  // the current one
	frames  int32  // so far
	touched []int  // scratch of add
	recent  int    // the id that was looked up last
	order   int    // of the last place
}

type gain struct {
	id int
	fact
}

// id returns the index of the entry for the name.
func (f *facts) id(name string) int {
	if f.recent < len(f.entries) && f.entries[f.recent].name == name {
		return f.recent // a step reads most often what the step before it wrote
	}
	id, ok := f.ids[name]
	if !ok {
		id = len(f.entries)
		f.ids[name] = id
		f.entries = append(f.entries, entry{name: name})
	}
	f.recent = id
	return id
}

func (f *facts) set(id int, line, all certainty) {
	e := &f.entries[id]
	if e.frame != f.frame {
		f.trail = append(f.trail, gain{id, e.fact})
	}
	since := e.since
	if e.all == never {
		since = int32(f.order)
	}
	e.fact = fact{line, all, f.frame, since}
}

// mark is the start of a frame.
type mark struct {
	trail int
	frame int32
}

func (f *facts) begin() mark {
	m := mark{len(f.trail), f.frame}
	f.frames++
	f.frame = f.frames
	return m
}

// end reverts the changes since the mark and adds them to the gains.
func (f *facts) end(m mark) {
	for _, before := range f.trail[m.trail:] {
		e := &f.entries[before.id]
		f.gains = append(f.gains, gain{before.id, e.fact})
		e.fact = before.fact
	}
	f.trail, f.frame = f.trail[:m.trail], m.frame
}

// perhaps notes that the gains may or may not exist.
func (f *facts) perhaps(gains []gain) {
	for _, g := range gains {
		e := &f.entries[g.id]
		line, all := max(e.line, min(g.line, maybe)), max(e.all, min(g.all, maybe))
		if line != e.line || all != e.all {
			f.set(g.id, line, all)
		}
	}
}

// joinWays continues after one of several ways, whose gains start at from. A fact
// that all ways share is kept; any other becomes maybe.
func (f *facts) joinWays(from, ways int) {
	for _, id := range f.add(from) {
		e := &f.entries[id]
		t := e.tally
		e.tally = tally{}
		if int(t.ways) < ways { // the others left it as it was
			t.count(e.fact)
		}
		f.set(id, shared(t.minLine, t.maxLine), shared(t.minAll, t.maxAll))
	}
}

// joinLanes continues after a fan-out of which at least that many lanes survive.
// Their gains exist, but not on the line. A gain is sure if fewer lanes lack it than
// survive.
func (f *facts) joinLanes(from, lanes, survivors int) {
	for _, id := range f.add(from) {
		e := &f.entries[id]
		sure := maybe
		if int(e.sure) > lanes-survivors {
			sure = surely
		}
		e.tally = tally{}
		f.set(id, e.line, max(e.all, sure))
	}
}

// add removes the gains from the given index on, tallies them and returns their ids,
// each once.
func (f *facts) add(from int) []int {
	f.touched = f.touched[:0]
	for _, g := range f.gains[from:] {
		t := &f.entries[g.id].tally
		if t.ways == 0 {
			f.touched = append(f.touched, g.id)
		}
		t.count(g.fact)
	}
	f.gains = f.gains[:from]
	return f.touched
}

func (t *tally) count(f fact) {
	if t.ways == 0 {
		t.minLine, t.minAll = f.line, f.all
	}
	t.minLine, t.maxLine = min(t.minLine, f.line), max(t.maxLine, f.line)
	t.minAll, t.maxAll = min(t.minAll, f.all), max(t.maxAll, f.all)
	t.ways++
	if f.all == surely {
		t.sure++
	}
}

func shared(least, most certainty) certainty {
	if least == most {
		return least
	}
	return maybe
}
