package log

import (
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
)

type half = record.Half

func halfOf(id dag.ID) half { return record.HalfOf(id) }

// known holds the steps of a run that have a result.
type known struct {
	rows    map[half]uint32 // the numbers of their rows, which are below Aside
	places  map[half]uint32 // the same by place; the last counts
	pending map[half]*write // results not yet on disk
	ahead   ahead
	next    int64 // the number of the last re-read row, plus 1
}

func newKnown() known {
	return known{rows: map[half]uint32{}, places: map[half]uint32{}, pending: map[half]*write{}, ahead: ahead{rows: map[half]*Row{}}}
}

func (k *known) has(digest dag.ID) bool {
	h := halfOf(digest)
	_, ok := k.rows[h]
	return ok || k.pending[h] != nil
}

// mostAhead is the maximum number of bytes of rows read ahead and not yet taken.
const mostAhead = 4 << 20

// ahead holds rows that were read before a caller needs them.
type ahead struct {
	rows  map[half]*Row
	order []half // oldest first, including taken ones until they are dropped
	size  int
}

// put keeps a row.
func (a *ahead) put(digest half, r *Row) {
	if a.rows[digest] != nil {
		return
	}
	if len(a.order) >= 2*len(a.rows)+batch { // most were taken
		a.order = slices.DeleteFunc(a.order, func(h half) bool { return a.rows[h] == nil })
	}
	a.rows[digest], a.order, a.size = r, append(a.order, digest), a.size+r.size()
}

// take returns the row of a step and forgets it. It returns nil if there is none.
func (a *ahead) take(digest half) *Row {
	r := a.rows[digest]
	if r != nil {
		delete(a.rows, digest)
		a.size -= r.size()
	}
	return r
}

// trim forgets the oldest rows until at most the given bytes are left.
func (a *ahead) trim(most int) {
	for len(a.order) > 0 && (a.size > most || a.rows[a.order[0]] == nil) {
		a.take(a.order[0])
		a.order = a.order[1:]
	}
}

// size estimates the memory of the row.
func (r *Row) size() int {
	const fixed = 512 // the fields and a map entry
	return fixed + len(r.Head) + len(r.Content) + 2*len(r.Path)
}
