package progress

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/tree"
)

// A row is a place in the tree, with the state of its visits.
type row struct {
	ashlar stone.Ashlar // zero if the place is known only from events
	name   string
	up     *row
	depth  int
	below  []*row
	inLane bool // the row is below a fan-out

	visits   int // number of visits that have started
	running  int
	failed   int       // number of failed visits
	ok       bool      // the last visit that ended did not fail
	waits    bool      // the last visit ended because the run is waiting for an answer
	began    time.Time // start of the latest visit
	spent    time.Duration
	replayed bool   // the result of the last visit that ended was taken from the record
	kind     string // kind of the last failure
	round    int    // for a loop: current round, from 1

	lanes    int    // for a fan-out: number of lanes, 0 if unknown
	ended    int    // number of lanes that have ended
	lost     int    // number of lanes that failed
	worked   int    // number of ended lanes that took longer than a replay
	active   []lane // running lanes with a label, by index; empty if the row is in a lane itself
	broken   []lane // failed lanes with a label
	agent    bool   // an agent has started at this place
	turns    int    // number of lines written about turns
	said     time.Time
	failures int // number of lines written about failures
}

// A lane is a lane of a fan-out.
type lane struct {
	index int
	label string
}

// place identifies a row below its parent: the combination of name and occurrence is unique.
type place struct {
	up         *row
	name       string
	occurrence int
}

// A Tree collects the events of a run for each place of its pipeline. It is safe for concurrent use. Rows are created only when
// the run reaches their parents, because a pipeline that reuses parts can have more places than fit in memory.
type Tree struct {
	mu   sync.Mutex // protects the rows
	root *row
	rows map[place]*row

	waits bool // the run is waiting for an answer
}

// NewTree returns the tree for a run of p that has not started yet.
func NewTree(p stone.Ashlar) *Tree {
	t := &Tree{rows: map[place]*row{}}
	t.root = &row{ashlar: tree.Body(p), name: p.Name()}
	return t
}

// reach creates the rows below r.
func (t *Tree) reach(r *row) {
	if r.below != nil || r.ashlar.IsZero() {
		return
	}
	for occurrence, child := range tree.Children(r.ashlar) {
		t.add(place{r, child.Name(), occurrence}, child)
	}
}

func (t *Tree) add(at place, a stone.Ashlar) *row {
	r := &row{ashlar: a, name: at.name, up: at.up, depth: at.up.depth + 1, inLane: at.up.inLane || at.up.fans()}
	at.up.below = append(at.up.below, r)
	t.rows[at] = r
	return r
}

func (r *row) form() string {
	if r.ashlar.IsZero() {
		return ""
	}
	return r.ashlar.Form()
}

func (r *row) fans() bool { return r.form() == "map" || r.form() == "parallel" }

// find returns the row for a path such as "review/loop[2]/lane[17]/draft". All rounds, lanes, branches and visits of a place share
// one row.
func (t *Tree) find(path string) *row {
	r := t.root
	first := true
	for segment := range address.Segments(path) {
		s := address.Parse(segment)
		if !first {
			r = t.child(r, s.Name, s.Occurrence)
		}
		first = false
		if len(s.Marks) > 0 && r.form() == "loop" && !r.inLane {
			r.round = max(r.round, s.Number()+1)
		}
	}
	return r
}

// shown returns a path in which lane numbers are replaced by lane labels, where these are known.
func (t *Tree) shown(path string) string {
	var out []string
	r := t.root
	for segment := range address.Segments(path) {
		s := address.Parse(segment)
		if len(out) > 0 {
			r = t.child(r, s.Name, s.Occurrence)
		}
		if r.fans() && len(s.Marks) == 1 {
			for _, l := range slices.Concat(r.active, r.broken) {
				if l.index == s.Number() {
					segment = strings.TrimSuffix(segment, "["+s.Marks[0].Text+"]") + "[" + l.label + "]"
					break
				}
			}
		}
		out = append(out, segment)
	}
	return address.Readable(strings.Join(out, "/"))
}

func (t *Tree) child(up *row, name string, occurrence int) *row {
	at := place{up, name, occurrence}
	if r := t.rows[at]; r != nil {
		return r
	}
	if t.reach(up); t.rows[at] != nil {
		return t.rows[at]
	}
	return t.add(place{up, strings.Clone(name), occurrence}, stone.Ashlar{})
}

// path returns the path of the row's place, without rounds and lanes.
func (r *row) path() string {
	if r.up == nil {
		return r.name
	}
	return r.up.path() + "/" + address.Readable(r.name)
}
