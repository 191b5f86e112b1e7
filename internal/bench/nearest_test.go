package bench

import (
	"testing"

	"github.com/stonelayer/stone/dag"
)

// BenchmarkNearest reads the first node of a line from its end, one million nodes later.
// The first read makes the index that the others use.
func BenchmarkNearest(b *testing.B) {
	b.Run("1000000/stone", func(b *testing.B) {
		const depth, reads = 1_000_000, 1_000
		first, later := dag.NewType[small]("first"), dag.NewType[item]("later")
		d, err := first.Append(dag.DAG{}, aSmall)
		for i := 0; i < depth && err == nil; i++ {
			d, err = later.Append(d, item{N: i})
		}
		if err != nil {
			b.Fatal(err)
		}
		measure(b, reads, "read", func() error {
			for range reads {
				if _, err := first.From(d); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
