package dag_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stonelayer/stone/dag"
)

type step struct {
	N int `json:"n"`
}

var (
	First = dag.NewType[step]("first")
	Step  = dag.NewType[step]("step")
)

// line returns a DAG of a First node and n Step nodes after it.
func line(b testing.TB, n int) dag.DAG {
	d, err := First.Append(dag.DAG{}, step{})
	for i := 0; i < n && err == nil; i++ {
		d, err = Step.Append(d, step{i})
	}
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	d := line(b, 0)
	var err error
	for i := 0; b.Loop(); i++ {
		if d, err = Step.Append(d, step{i}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNearest(b *testing.B) {
	d := line(b, 1_000_000)
	for _, typ := range []string{"first", "step", "none"} {
		b.Run(typ, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = d.Nearest(typ)
			}
		})
	}
	b.Run("first, the first time", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			d := line(b, 1_000_000)
			b.StartTimer()
			_, _ = d.Nearest("first")
		}
	})
	b.Run("first, after each append", func(b *testing.B) {
		b.ReportAllocs()
		d := d
		for i := 0; b.Loop(); i++ {
			d, _ = Step.Append(d, step{i})
			_, _ = d.Nearest("first")
		}
	})
}

func BenchmarkAll(b *testing.B) {
	for _, answer := range []int{1, 1_000} {
		d := line(b, 1_000_000)
		for i := 1; i < answer; i++ {
			d, _ = First.Append(d, step{i})
		}
		b.Run(fmt.Sprint(answer), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if all, _ := d.All("first"); len(all) != answer {
					b.Fatal(len(all))
				}
			}
		})
	}
}

func lanes(b *testing.B, base dag.DAG, n, length int) []dag.DAG {
	out := make([]dag.DAG, n)
	for i := range out {
		out[i] = lane(b, base, i)
		for k := range length - 1 {
			out[i], _ = Step.Append(out[i], step{k})
		}
	}
	return out
}

// The figures are for one node of a lane; they should not depend on how many
// lanes there are, nor on the base.
func BenchmarkLanes(b *testing.B) {
	base := line(b, 1_000_000)
	for _, n := range []int{1_000, 10_000, 100_000} {
		ds := lanes(b, base, n, 3)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if d, err := dag.Join(base, ds); err != nil || d.Len() < base.Len()+3*n {
					b.Fatal(d.Len(), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(3*n), "ns/node")
		})
	}
}

func BenchmarkWriteAndRead(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		d := line(b, n)
		perNode := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		}
		var text bytes.Buffer
		if err := dag.Write(&text, d); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("write/", n), func(b *testing.B) {
			for b.Loop() {
				if err := dag.Write(io.Discard, d); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b)
		})
		b.Run(fmt.Sprint("read/", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := dag.Read(bytes.NewReader(text.Bytes())); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b)
		})
	}
}
