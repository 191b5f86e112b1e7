package record_test

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/stonelayer/stone/internal/record"
)

// An index of any size answers as a map does.
func TestIndex(t *testing.T) {
	for _, size := range []int{-1, 0, 7, 1000, 5000} {
		x, want := record.NewIndex(size), map[record.Half]uint32{}
		half := func(n int) record.Half {
			return record.HalfOf(sha256.Sum256(binary.AppendUvarint(nil, uint64(n))))
		}
		for n := range 6000 {
			h := half(n % 4000)
			want[h] = uint32(n * n)
			x.Put(h, uint32(n*n))
		}
		for n := range 5000 {
			h := half(n)
			is, known := want[h]
			if got, found := x.Get(h); found != known || found && got != is {
				t.Fatalf("size %d: %d has the number %d, %v, want %d, %v", size, n, got, found, is, known)
			}
		}
	}
}
