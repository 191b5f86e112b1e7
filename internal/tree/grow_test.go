package tree_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// grown returns the random pipeline of a seed. Pipelines have all forms. Their leaves read in all ways
// and run children.
func grown(seed uint64) stone.Ashlar {
	for try := uint64(0); ; try++ { // until one is valid: about every third is
		g := &grower{Rand: rand.New(rand.NewPCG(seed, try))}
		p := stone.Seq("tree", g.leaf(), g.ashlar(3), g.leaf())
		if stone.Validate(p, stone.Given{}).Err() == nil {
			return p
		}
	}
}

// types are the types that a pipeline reads and writes.
var types = func() []dag.Type[int] {
	out := make([]dag.Type[int], 4)
	for i := range out {
		out[i] = dag.NewType[int](fmt.Sprint("type", i))
	}
	return out
}()

type grower struct {
	*rand.Rand
	names int
}

func (g *grower) name(form string) string {
	g.names++
	name := fmt.Sprint(form, g.names)
	if g.IntN(8) == 0 {
		name += "/[#2]@~%" // names may hold anything
	}
	return name
}

func (g *grower) typ() dag.Type[int] { return types[g.IntN(len(types))] }

// reader reads one type in one way, as a number.
func (g *grower) reader() dag.Reader[int] {
	sum := func(list *[]int) int {
		var numbers []int
		if list != nil {
			numbers = *list
		}
		total := len(numbers)
		for _, n := range numbers {
			total = total*31 + n
		}
		return total % 1_000_003
	}
	switch t := g.typ(); g.IntN(12) {
	case 0:
		if g.IntN(8) == 0 { // its excerpt is the whole DAG, and flows wait for it
			return dag.Derive(dag.Everything, func(d dag.DAG) int { return d.Len() })
		}
		return many(t)
	case 1, 2, 3:
		return dag.Derive(dag.Maybe(dag.All(t)), sum)
	case 4, 5, 6:
		return dag.Derive(dag.Maybe(dag.Since(t, g.typ())), sum)
	case 7:
		return dag.ReaderFunc(func(d dag.DAG) (int, error) { return len(d.Latest().JSON()), nil }, dag.Latest)
	default:
		return dag.Derive(dag.Maybe(t), func(n *int) int {
			if n == nil {
				return 1
			}
			return *n + 2
		})
	}
}

// many counts the nodes of a type, perhaps none.
func many(t dag.Type[int]) dag.Reader[int] {
	return dag.Derive(dag.Maybe(dag.All(t)), func(n *[]int) int {
		if n == nil {
			return 0
		}
		return len(*n)
	})
}

// reads combines up to two readers.
func (g *grower) reads() dag.Reader[int] {
	all := make([]dag.Reader[int], g.IntN(3))
	queriers := make([]dag.Querier, len(all))
	for i := range all {
		all[i] = g.reader()
		queriers[i] = all[i]
	}
	return dag.ReaderFunc(func(d dag.DAG) (int, error) {
		total := 7
		for _, r := range all {
			n, err := r.From(d)
			if err != nil {
				return 0, err
			}
			total = (total*31 + n) % 1_000_003
		}
		return total, nil
	}, queriers...)
}

func (g *grower) leaf() stone.Ashlar {
	reads, salt := g.reads(), g.IntN(1000)
	opts := []stone.LeafOption{stone.Queries(reads)}
	if g.IntN(6) == 0 { // it may read types that the leaf itself does not
		seen := g.reads()
		judge := stone.New(g.name("judge"), g.typ(), value(seen, salt), stone.Queries(seen))
		opts = append(opts, stone.Children(stone.Walk{}.InOrder(judge)))
	}
	return stone.New(g.name("leaf"), g.typ(), value(reads, salt), opts...)
}

func value(reads dag.Reader[int], salt int) func(context.Context, dag.DAG) (int, error) {
	return func(_ context.Context, d dag.DAG) (int, error) {
		n, err := reads.From(d)
		return n + salt, err
	}
}

func (g *grower) some(depth, most int) []stone.Ashlar {
	out := make([]stone.Ashlar, 1+g.IntN(most))
	for i := range out {
		out[i] = g.ashlar(depth - 1)
	}
	if g.IntN(3) == 0 {
		out = append(out, out[0]) // one ashlar in two places
	}
	return out
}

func (g *grower) ashlar(depth int) stone.Ashlar {
	if depth == 0 {
		return g.leaf()
	}
	count := many(g.typ())
	switch g.IntN(9) {
	case 0:
		return stone.Seq(g.name("seq"), g.some(depth, 3)...)
	case 1, 2:
		return stone.Flow(g.name("flow"), g.some(depth, 5)...)
	case 3:
		enough := 1 + g.IntN(6)
		return stone.Loop(g.name("loop"), g.ashlar(depth-1), stone.Until(count, func(n int) bool { return n >= enough }), 3)
	case 4:
		branches := make([]stone.Branch, 3)
		for i := range branches {
			branches[i] = stone.Case(i, g.ashlar(depth-1))
		}
		return stone.Match(g.name("match"), stone.On(count, func(n int) int { return n % 3 }), branches...)
	case 5:
		items := dag.Derive(count, func(n int) []int { return slices.Repeat([]int{n}, n%3+1) })
		return stone.Seq(g.name("map"), stone.Map(g.name("lanes"), items, g.typ(), g.ashlar(depth-1)), stone.Reduce(g.leaf()))
	case 6:
		var parts []stone.FanPart
		for _, lane := range g.some(depth, 3) {
			parts = append(parts, lane)
		}
		return stone.Seq(g.name("parallel"), stone.Parallel(g.name("lanes"), parts...), stone.Reduce(g.leaf()))
	case 7:
		return stone.Rescue(g.name("rescue"), g.ashlar(depth-1), g.ashlar(depth-1))
	default:
		a, b := g.ashlar(depth-1), g.leaf()
		return stone.Scoped(g.name("scoped"), stone.Walk{}.InOrder(a, b), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			for range 2 {
				if d = stone.In(ctx).RunChild(a, d); d.InFlight() {
					return d, nil
				}
			}
			return stone.In(ctx).RunChild(b, d), nil
		})
	}
}
