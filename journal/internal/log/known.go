package log

import (
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
)

type half = record.Half

func halfOf(id dag.ID) half { return record.HalfOf(id) }

// known holds this process's knowledge of a run's steps that have a result.
type known struct {
	rows    map[half]uint32 // numbers of the steps' rows, which are below Aside, by digest
	places  map[half]uint32 // numbers of the rows by place; if a place has several, the last one
	pending map[half]*write // results that are not yet on disk, by digest
	ahead   ahead
	next    int64 // 1 more than the number of the last row that was read again
}

func newKnown() known {
	return known{rows: map[half]uint32{}, places: map[half]uint32{}, pending: map[half]*write{}, ahead: ahead{rows: map[half]*Row{}}}
}

func (k *known) has(digest dag.ID) bool {
	h := halfOf(digest)
	_, ok := k.rows[h]
	return ok || k.pending[h] != nil
}

// mostAhead is the maximum size in bytes of the rows that were read ahead and have not been taken yet.
const mostAhead = 4 << 20

// ahead holds rows that were read before any caller needed them.
type ahead struct {
	rows  map[half]*Row
	order []half // oldest first; may still contain rows that were taken
	size  int
}

// put adds a row.
func (a *ahead) put(digest half, r *Row) {
	if a.rows[digest] != nil {
		return
	}
	if len(a.order) >= 2*len(a.rows)+batch { // most of the rows have been taken
		a.order = slices.DeleteFunc(a.order, func(h half) bool { return a.rows[h] == nil })
	}
	a.rows[digest], a.order, a.size = r, append(a.order, digest), a.size+r.size()
}

// take removes and returns the row of a step. It returns nil if there is none.
func (a *ahead) take(digest half) *Row {
	r := a.rows[digest]
	if r != nil {
		delete(a.rows, digest)
		a.size -= r.size()
	}
	return r
}

// trim drops the oldest rows until at most the given number of bytes is left.
func (a *ahead) trim(most int) {
	for len(a.order) > 0 && (a.size > most || a.rows[a.order[0]] == nil) {
		a.take(a.order[0])
		a.order = a.order[1:]
	}
}

// size estimates how much memory the row uses.
func (r *Row) size() int {
	const fixed = 512 // for the fields and a map entry
	return fixed + len(r.Head) + len(r.Content) + 2*len(r.Path)
}
