package stone

import (
	"fmt"
	"iter"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/suggest"
)

// This file checks that nodes of the types that queries read exist at the places of the queries.

// reads checks the queries of s, the spec of a body or a decision.
func (v *validator) reads(s *spec) {
	if len(v.pending) > 0 {
		v.unreduced(fmt.Sprintf("%q", s.name))
	}
	for i, q := range s.queries {
		if q.Type() != nil || !slices.Contains(s.queries[:i], q) { // several nil queries are reported only once
			v.query(q)
		}
	}
}

func (v *validator) query(q dag.Query) {
	t := q.Type()
	optional := q.IsOptional()
	switch {
	case q.IsLatest():
		v.wantLatest(optional)
		if path, typ := q.Lens(); typ != nil {
			v.lens(look{v.here, path, typ}, v.last)
		}
	case q.IsEverything():
		v.everything = true
	case t == nil || noEnd(q):
		v.find(v.here, Finding{Type: "bad-type"}, "one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function")
	default:
		v.want(q, t)
		if after := q.After(); after != nil {
			v.want(q, after)
		}
	}
}

// noEnd reports whether q is a Since query that lacks the type after which it starts.
func noEnd(q dag.Query) bool {
	return !q.IsNearest() && !q.IsAll() && !q.IsLanes() && q.After() == nil
}

// want checks that a node of type t exists among the nodes that q reads.
func (v *validator) want(q dag.Query, t dag.AnyType) {
	name := t.Name()
	d := demand{at: v.here, query: q, typ: t}
	if name == "" {
		v.find(v.here, Finding{Type: "bad-type"}, "one of its queries: %v", t.Err())
		return
	}
	d.id = v.id(name)
	e := &v.entries[d.id]
	e.queried = true
	v.failuresRead = v.failuresRead || name == dag.Failure.Name() && !q.IsNearest()
	switch {
	case e.written == nil:
		v.readings = append(v.readings, d)
	case e.written != t:
		v.readable(d)
	}
	if q.IsLanes() {
		v.wantLanes(q, t)
		return
	}
	if q.IsAll() && !q.IsHistory() {
		v.mixed(t)
	}
	switch d.certainty(e.fact) {
	case maybe:
		v.unsure(d, "which not every branch before it produces: produce it in all of them")
	case never:
		if d.inLanes = e.all != never; !d.inLanes && !q.IsOptional() {
			d.suggestion = v.suggest(name)
		}
		v.unmet = append(v.unmet, d)
	}
}

// certainty returns how certain it is that a node exists among the nodes that the query of d reads. Of the queries that are
// checked here, only All reads nodes in lanes.
func (d demand) certainty(f fact) certainty {
	if d.query.IsNearest() || d.query.After() != nil {
		return f.line
	}
	return f.all
}

func (v *validator) unsure(d demand, why string) {
	if !d.query.IsOptional() {
		v.find(d.at, Finding{Type: "maybe-unavailable", Warning: true, Queried: d.typ.Name()},
			"%s reads %q, %s, or read it with dag.Maybe", d.at.spec.name, d.typ.Name(), why)
	}
}

// nextRound checks the unmet demands from the given index on again, because in the next round of a loop, the nodes of the
// previous round exist.
func (v *validator) nextRound(from int) {
	kept := v.unmet[:from]
	for _, d := range v.unmet[from:] {
		e := &v.entries[d.id]
		if d.certainty(e.fact) != never {
			v.unsure(d, "which only an earlier round can produce: produce it before the loop")
			continue
		}
		d.inLanes = d.inLanes || e.all != never
		kept = append(kept, d)
	}
	v.unmet = kept
}

// late adds the findings that are known only at the end of the walk: types that no step has written, and queries whose types were
// written only after the query was checked.
func (v *validator) late() {
	for _, d := range v.readings {
		v.readable(d)
	}
	for _, d := range v.unmet {
		name, e := d.typ.Name(), &v.entries[d.id]
		switch {
		case d.inLanes:
			v.find(d.at, Finding{Type: "lane-type-read-as-one", Queried: name},
				"%s reads %q, which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out", d.at.spec.name, name)
		case d.query.IsOptional() || name == dag.Failure.Name() && !d.query.IsNearest():
		case e.writer != nil && d.suggestion == "":
			v.find(d.at, Finding{Type: "missing-producer", Queried: name},
				"%s reads %q, but no earlier step produces it: %s does, but not before it", d.at.spec.name, name, e.writer.path())
		default:
			v.find(d.at, Finding{Type: "missing-producer", Queried: name, Suggestion: d.suggestion},
				"%s reads %q, but no earlier step produces it: add one that does, or give it with the input", d.at.spec.name, name)
		}
	}
}

// maxSuggestions limits the searches for similar names, each of which compares all names.
const maxSuggestions = 20

func (v *validator) suggest(name string) string {
	if v.suggestions++; v.suggestions > maxSuggestions {
		return ""
	}
	return suggest.Closest(name, v.present())
}

// present returns an iterator over the names of the types of which nodes can exist at this place.
func (v *validator) present() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, e := range v.entries {
			if e.all != never && !yield(e.name) {
				return
			}
		}
	}
}

// latest holds what is known about the latest node at a place.
type latest struct {
	there certainty
	lanes bool        // the latest node belongs to the last lane of a fan-out
	typ   dag.AnyType // nil if the type depends on the run or the node comes from the input
	ways  *ways       // the alternatives, if the latest node depends on the path taken
}

// ways holds the alternatives for the latest node.
type ways struct {
	of     []latest
	read   bool   // whether a query reads the latest node
	loop   bool   // whether the last alternative, which is the previous round, is still unknown
	lenses []look // lenses into the latest node, checked once the last alternative is known
}

// oneOf returns the facts about the latest node after a run has taken one of several paths.
func oneOf(of []latest) latest {
	out := of[0]
	alike := out.typ != nil
	for _, l := range of[1:] {
		if l.there != out.there {
			out.there = maybe
		}
		out.lanes = out.lanes || l.lanes
		alike = alike && l.typ == out.typ
	}
	if !alike {
		out.typ, out.ways = nil, &ways{of: of}
	}
	return out
}

// markRead records that a query reads the latest node, described by l.
func (v *validator) markRead(l latest) {
	if l.typ != nil {
		v.entries[v.id(l.typ.Name())].queried = true
	}
	if w := l.ways; w != nil && !w.read {
		w.read = true
		for _, l := range w.of {
			v.markRead(l)
		}
	}
}

func (v *validator) wantLatest(optional bool) {
	v.markRead(v.last)
	switch {
	case v.last.lanes:
		v.find(v.here, Finding{Type: "lane-type-read-as-one"},
			"%s reads the latest node, which belongs to whichever lane is the last one: read the nodes of the lanes with dag.Lanes", v.here.spec.name)
	case optional:
	default:
		v.wantSome("the latest node")
	}
}

// wantSome checks that the DAG has at least one node at this place.
func (v *validator) wantSome(what string) {
	switch v.last.there {
	case never:
		v.find(v.here, Finding{Type: "missing-producer"}, "%s needs %s, but nothing comes before it: add an earlier step that produces it", v.here.spec.name, what)
	case maybe:
		v.find(v.here, Finding{Type: "maybe-unavailable", Warning: true}, "%s needs %s, but perhaps nothing comes before it: add an earlier step that always runs", v.here.spec.name, what)
	}
}

// certainty says whether a node exists when a run reaches a place: never, on some paths, or always.
type certainty uint8

const (
	never certainty = iota
	maybe
	surely
)

// fact says how certain it is that a node of a type exists at a place: line applies to the line of first parents, which Nearest
// and Since read, and all applies to the whole DAG, which All reads.
type fact struct {
	line, all certainty
	frame     int32 // the frame that set this fact
	since     int32 // the order of the first place at which a node exists
}

// entry holds the facts about one type name.
type entry struct {
	name string
	fact
	tally
	written dag.AnyType // the written type; nil if only the input has nodes of the type
	alike   dag.AnyType // another type with the same name and schema, if known
	writer  *place      // the first writer; nil for the run itself and the input
	given   bool        // whether the input has nodes of the type
	product bool        // whether a leaf produces the type for other steps
	queried bool        // whether something reads the type
}

// origin returns a phrase that names the source of a type that no step writes: the input or the run itself.
func (e *entry) origin() string {
	if e.given {
		return "the input has"
	}
	return "the run itself writes"
}

// tally combines the facts at the ends of several paths.
type tally struct {
	ways, sure       int32
	minLine, maxLine certainty
	minAll, maxAll   certainty
}

// facts is the state of the walk. Alternative paths and concurrent lanes are walked one after the other from the same state, each
// in its own frame. When a frame ends, its changes are reverted and stored as gains. The state is never copied, so the cost of a
// walk is linear in the size of the tree, however deeply frames are nested.
type facts struct {
	ids     map[string]int
	entries []entry
	trail   []gain // the previous values of facts that the open frames have changed
	gains   []gain // the changes of ended frames that are not joined yet
	frame   int32  // the current frame
	frames  int32  // the number of frames so far
	touched []int  // a buffer that add reuses
	recent  int    // the id that the last lookup returned
	order   int    // the order of the last place
}

type gain struct {
	id int
	fact
}

// id returns the index of the entry for the name. If there is none, it adds one.
func (f *facts) id(name string) int {
	if f.recent < len(f.entries) && f.entries[f.recent].name == name {
		return f.recent // a step usually reads what the previous step wrote
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

// mark is the state of facts at the start of a frame.
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

// end ends a frame: it reverts all changes since the mark and adds them to the gains.
func (f *facts) end(m mark) {
	for _, before := range f.trail[m.trail:] {
		e := &f.entries[before.id]
		f.gains = append(f.gains, gain{before.id, e.fact})
		e.fact = before.fact
	}
	f.trail, f.frame = f.trail[:m.trail], m.frame
}

// joinWays sets the state after several alternative paths, whose gains start at index from. A fact that is equal at the end of
// all paths is kept; any other becomes maybe.
func (f *facts) joinWays(from, ways int) {
	for _, id := range f.add(from) {
		e := &f.entries[id]
		t := e.tally
		e.tally = tally{}
		if int(t.ways) < ways { // the other paths did not change the fact
			t.count(e.fact)
		}
		f.set(id, shared(t.minLine, t.maxLine), shared(t.minAll, t.maxAll))
	}
}

// joinLanes sets the state after a fan-out, at least survivors of whose lanes succeed. The nodes of lanes exist, but not on the
// line of first parents. A node of a type surely exists if the number of lanes without such nodes is less than survivors.
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

// add removes the gains from the given index on, adds them to the tallies of their types and returns the ids of these types
// without duplicates.
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
