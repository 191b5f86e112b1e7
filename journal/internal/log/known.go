package log

import (
	"crypto/subtle"

	"github.com/stonelayer/stone/dag"
)

// A half is an id or a digest of half the length. A run knows its records by halves, since it
// may have millions. Two digests of SHA-256 with the same half are not found in 2⁶⁴ tries.
type half [16]byte

func halfOf(id dag.ID) (h half) {
	subtle.XORBytes(h[:], id[:len(h)], id[len(h):])
	return h
}

// known is the steps of a run that have a result.
type known struct {
	rows    map[half]uint32 // the numbers of their rows, which are below Aside
	pending map[half]*write // those that are not on the disk yet
	ahead   ahead
	next    int64 // the number behind the last row that was read again
}

func newKnown() known {
	return known{rows: map[half]uint32{}, pending: map[half]*write{}, ahead: ahead{rows: map[half]*Row{}}}
}

func (k *known) has(digest dag.ID) bool {
	h := halfOf(digest)
	_, ok := k.rows[h]
	return ok || k.pending[h] != nil
}

// mostAhead is how many bytes of rows a run keeps that no caller has taken yet.
const mostAhead = 4 << 20

// ahead is rows that were read before a caller needs them.
type ahead struct {
	rows  map[half]*Row
	order []half // the oldest first; those that were taken too
	size  int
}

// put keeps a row.
func (a *ahead) put(digest half, r *Row) {
	if a.rows[digest] == nil {
		a.rows[digest], a.order, a.size = r, append(a.order, digest), a.size+r.size()
	}
}

// take returns the row of a step and forgets it. It returns nil if it does not have it.
func (a *ahead) take(digest half) *Row {
	r := a.rows[digest]
	if r != nil {
		delete(a.rows, digest)
		a.size -= r.size()
	}
	return r
}

// trim forgets the oldest rows until the others have at most so many bytes.
func (a *ahead) trim(most int) {
	for len(a.order) > 0 && (a.size > most || a.rows[a.order[0]] == nil) {
		a.take(a.order[0])
		a.order = a.order[1:]
	}
}

// size is about what the row needs in memory.
func (r *Row) size() int {
	const fixed = 512 // the fields, and its place in a map
	return fixed + len(r.Head) + len(r.Content) + 2*len(r.Path)
}
