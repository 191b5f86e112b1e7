package record

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"

	"github.com/stonelayer/stone/dag"
)

// A Half is an ID or a digest, folded to half its length. This saves memory, because a run may have millions of records. A
// collision is to be expected only after about 2⁶⁴ records.
type Half [16]byte

// HalfOf folds an ID to a Half.
func HalfOf(id dag.ID) (h Half) {
	subtle.XORBytes(h[:], id[:len(h)], id[len(h):])
	return h
}

// An Index maps halves to numbers. It needs 23 bytes for each half if the number of halves is known in advance, while a map needs
// up to 48 bytes.
type Index struct {
	keys    []Half
	numbers []uint32 // the number plus 1, or 0 for a free place
	used    int
}

// NewIndex returns an Index with room for about the given number of halves.
func NewIndex(size int) *Index {
	places := max(size, 0)*8/7 + 8
	return &Index{keys: make([]Half, places), numbers: make([]uint32, places)}
}

// Get returns the number of a half, and reports whether there is one.
func (x *Index) Get(h Half) (number uint32, known bool) {
	at := x.place(h)
	return x.numbers[at] - 1, x.numbers[at] > 0
}

// Put sets the number of a half. The number must be below 1<<32 - 1.
func (x *Index) Put(h Half, number uint32) {
	at := x.place(h)
	if x.numbers[at] == 0 {
		if x.used++; x.used > len(x.keys)*7/8 {
			x.grow()
			at = x.place(h)
		}
		x.keys[at] = h
	}
	x.numbers[at] = number + 1
}

// place returns the place of a half, or a free place if it is not in the Index. Because halves are digests, no further hash is
// needed.
func (x *Index) place(h Half) int {
	n := len(x.keys)
	hi, _ := bits.Mul64(binary.LittleEndian.Uint64(h[:]), uint64(n))
	at := int(hi)
	for x.numbers[at] > 0 && x.keys[at] != h {
		if at++; at == n {
			at = 0
		}
	}
	return at
}

func (x *Index) grow() {
	old := *x
	*x = *NewIndex(len(old.keys) * 3 / 2)
	x.used = old.used
	for i, n := range old.numbers {
		if n > 0 {
			at := x.place(old.keys[i])
			x.keys[at], x.numbers[at] = old.keys[i], n
		}
	}
}
