package stone

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
)

type (
	benchDoc   struct{ Text string }
	benchAlike struct{ Text string } // the schema of benchDoc, another Go type
)

var (
	benchType = dag.NewType[benchDoc]("doc")
	alikeType = dag.NewType[benchAlike]("doc")
)

// shapes are pipelines of n leaves. Names and types are made beforehand, as a
// program has them in constants and package variables.
var shapes = []struct {
	name  string
	build func(names []string, types []dag.Type[benchDoc]) Ashlar
}{
	{"flat, one type", func(names []string, _ []dag.Type[benchDoc]) Ashlar { return Seq("p", sameType(names, benchType)...) }},
	{"flat, one type, schemas compared", func(names []string, _ []dag.Type[benchDoc]) Ashlar {
		return Seq("p", sameType(names, alikeType)...)
	}},
	{"flat, n types", func(names []string, types []dag.Type[benchDoc]) Ashlar { return Seq("p", chain(names, types)...) }},
	{"nested 300 deep", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		return nested(chain(names, types), func(steps []Ashlar) Ashlar { return Seq("s", steps...) })
	}},
	{"scoped", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		return Scoped("p", Walk{}.InOrder(chain(names, types)...), func(context.Context, dag.DAG) (dag.DAG, error) { return dag.DAG{}, nil })
	}},
	{"parallel, n lanes", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		lanes := make([]FanPart, len(names), len(names)+1)
		for i := range lanes {
			lanes[i] = Func0(names[i], types[i], func(context.Context) (benchDoc, error) { return benchDoc{}, nil })
		}
		return Seq("p", Parallel("fan", append(lanes, AllLanes())...), Reduce(New("reduce", benchType, func(context.Context, dag.DAG) (benchDoc, error) { return benchDoc{}, nil }, Queries(dag.Everything))))
	}},
	{"match, n branches", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		branches := make([]Branch, len(names))
		for i := range branches {
			branches[i] = Case(names[i], Func(names[i], types[0], benchType, echo))
		}
		first := Func0("first", types[0], func(context.Context) (benchDoc, error) { return benchDoc{}, nil })
		return Seq("p", first, Match("m", Lens("Text"), branches...))
	}},
	{"loops 20 deep", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		p := Seq("p", chain(names, types)...)
		for range 20 {
			p = Loop("loop", p, Until(types[0], func(benchDoc) bool { return true }), 3)
		}
		return p
	}},
	{"rescues 20 deep", func(names []string, types []dag.Type[benchDoc]) Ashlar {
		p := Seq("p", chain(names, types)...)
		for i := range 20 {
			p = Rescue("rescue", p, Func(fmt.Sprint("heal", i), types[0], types[0], echo))
		}
		return p
	}},
}

func echo(_ context.Context, v benchDoc) (benchDoc, error) { return v, nil }

// sameType is a chain of leaves that read one type and write benchType.
func sameType[T any](names []string, read dag.Type[T]) []Ashlar {
	steps := make([]Ashlar, len(names))
	steps[0] = Func0(names[0], benchType, func(context.Context) (benchDoc, error) { return benchDoc{}, nil })
	for i, name := range names[1:] {
		steps[i+1] = Func(name, read, benchType, func(context.Context, T) (benchDoc, error) { return benchDoc{}, nil })
	}
	return steps
}

func chain(names []string, types []dag.Type[benchDoc]) []Ashlar {
	steps := make([]Ashlar, len(names))
	for i, name := range names {
		if i == 0 {
			steps[0] = Func0(name, types[0], func(context.Context) (benchDoc, error) { return benchDoc{}, nil })
			continue
		}
		steps[i] = Func(name, types[i-1], types[i], echo)
	}
	return steps
}

// nested distributes the steps over nested composites.
func nested(steps []Ashlar, compose func([]Ashlar) Ashlar) Ashlar {
	const deep = 300
	each := max(1, len(steps)/deep)
	inner := compose(steps[len(steps)-each:])
	for at := len(steps) - each; at > 0; at -= each {
		inner = compose(append(steps[max(0, at-each):at:at], inner))
	}
	return inner
}

func BenchmarkValidate(b *testing.B) {
	for _, shape := range shapes {
		for _, n := range []int{1_000, 100_000} {
			names, types := make([]string, n), make([]dag.Type[benchDoc], n)
			for i := range names {
				names[i] = fmt.Sprintf("step-%d", i)
				types[i] = dag.NewType[benchDoc](fmt.Sprintf("type-%d", i))
			}
			perAshlar := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/ashlar")
			}
			b.Run(fmt.Sprintf("%s/%d/both", shape.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Validate(shape.build(names, types), Given{})
				}
				perAshlar(b)
			})
			p := shape.build(names, types)
			b.Run(fmt.Sprintf("%s/%d/validate", shape.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Validate(p, Given{})
				}
				perAshlar(b)
			})
		}
	}
}

// TestShapesAreValid keeps the benchmark from measuring findings.
func TestShapesAreValid(t *testing.T) {
	names, types := []string{"a", "b", "c", "d"}, make([]dag.Type[benchDoc], 4)
	for i := range types {
		types[i] = dag.NewType[benchDoc](fmt.Sprintf("type-%d", i))
	}
	for _, shape := range shapes {
		if errs := Validate(shape.build(names, types), Given{}).Errors(); len(errs) > 0 {
			t.Errorf("%s: %v", shape.name, errs)
		}
	}
}

// TestEveryPlaceOnce is why the validator is linear: it comes by every place of a
// tree once, however deeply loops and rescues are nested.
func TestEveryPlaceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := (&grower{T: t, witness: &witness{}}).tree()
		places := 0
		p.each(func(*spec) { places++ })
		if visits := check(p, Given{}).order; visits != places {
			t.Fatalf("%d visits of %d places\n%s", visits, places, sketch(p))
		}
	})
}
