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

// A row is one place of the tree, with the state of its visits.
type row struct {
	ashlar stone.Ashlar // zero if the place is known from events only
	name   string
	up     *row
	depth  int
	below  []*row
	inLane bool // something above is a fan-out

	visits   int // that started
	running  int
	failed   int       // visits that failed
	ok       bool      // the last visit to end did not fail
	waits    bool      // it ended because the run waits for an answer
	began    time.Time // of the latest visit
	spent    time.Duration
	replayed bool   // the result of the last visit to end was taken from the record
	kind     string // of the last failure
	round    int    // of a loop, from 1

	lanes    int    // of a fan-out, 0 if unknown
	ended    int    // lanes that ended
	lost     int    // lanes that ended in a failure
	worked   int    // ended lanes that took more than a replay does
	active   []lane // running lanes with a label, by index; none if r is in a lane itself
	broken   []lane // lanes with a label that failed
	agent    bool   // an agent has started there
	turns    int    // lines written about them
	said     time.Time
	failures int // lines written about them
}

// A lane is one of a fan-out.
type lane struct {
	index int
	label string
}

// place identifies a row: below one row, names and occurrences are unique.
type place struct {
	up         *row
	name       string
	occurrence int
}

// A Tree collects the events of a run by the places of its pipeline. It may be used by several goroutines at once. Rows are
// created when a run comes near, because a pipeline that reuses parts can have more places than fit in memory.
type Tree struct {
	mu   sync.Mutex // guards the rows
	root *row
	rows map[place]*row

	waits bool // for an answer
}

// NewTree returns the tree of a run of p that has not started.
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

// find returns the row of a path such as "review/loop[2]/lane[17]/draft". Rounds, lanes, branches and visits of one place share a
// row.
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

// shown returns a path with lane labels, where known, instead of lane numbers.
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

// path names the place of a row, without rounds and lanes.
func (r *row) path() string {
	if r.up == nil {
		return r.name
	}
	return r.up.path() + "/" + address.Readable(r.name)
}
