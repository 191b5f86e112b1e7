package stone

import (
	"github.com/stonelayer/stone/dag"
)

// certainty says whether something is there when a run comes by.
type certainty uint8

const (
	never certainty = iota
	maybe
	surely
)

// fact is what is known of a type at one point of the walk: whether there is a
// node of it on the line of first parents, where Nearest and Since look, and
// whether there is one at all, as All finds it also in the lanes of a fan-out.
type fact struct {
	line, all certainty
	frame     int32 // in which it was set
}

// entry is what the validator knows of one type name.
type entry struct {
	name string
	fact
	tally
	written dag.AnyType // as what it is written; nil for what comes with an input only
	alike   dag.AnyType // another type with the same schema
	writer  *place      // who is the first to write it; nil for the run itself and the input
	given   bool        // the input has it
	product bool        // some leaf produces it for others
	queried bool        // something reads it
}

// origin says where a type comes from that nothing in the tree writes.
func (e *entry) origin() string {
	if e.given {
		return "the input has"
	}
	return "the run itself writes"
}

// tally adds up what several ways left behind.
type tally struct {
	ways, sure       int32
	minLine, maxLine certainty
	minAll, maxAll   certainty
}

// facts is the state of the walk. Ways that exclude each other, or do not see
// each other, are walked one after the other from the same state: each in a
// frame, at whose end its changes are taken back and kept as gains. Nothing is
// copied, so that a walk is linear however deeply its frames are nested.
type facts struct {
	ids     map[string]int
	entries []entry
	trail   []gain // what was before, for the frames that are open
	gains   []gain // what was gained in the frames that wait for being joined
	frame   int32  // the one at hand
	frames  int32  // so far
	touched []int  // scratch of add
	recent  int    // the id that was asked for last
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
	e.fact = fact{line, all, f.frame}
}

// mark is where a frame began.
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

// end takes back what was changed since the mark, and puts it on the gains.
func (f *facts) end(m mark) {
	for _, before := range f.trail[m.trail:] {
		e := &f.entries[before.id]
		f.gains = append(f.gains, gain{before.id, e.fact})
		e.fact = before.fact
	}
	f.trail, f.frame = f.trail[:m.trail], m.frame
}

// perhaps notes that what was gained may be there, or not.
func (f *facts) perhaps(gains []gain) {
	for _, g := range gains {
		e := &f.entries[g.id]
		line, all := max(e.line, min(g.line, maybe)), max(e.all, min(g.all, maybe))
		if line != e.line || all != e.all {
			f.set(g.id, line, all)
		}
	}
}

// joinWays goes on after one of several ways was taken, whose gains are those
// from the mark on: what all of them agree upon is so, the rest may be.
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

// joinLanes goes on after a fan-out of which that many lanes survive at least.
// What they gained is there, but not on the line: surely, if too few lanes lack
// it to be all that survive.
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

// add takes the gains from the mark on, tallies them, and returns the ids of
// which there are some.
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
