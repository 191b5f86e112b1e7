package stone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A Map runs one lane for each item of a list. One lane fails, and the others are joined.
func ExampleMap() {
	type words struct {
		List []string `json:"list"`
	}
	list := dag.NewType[words]("words")
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	total := dag.NewType[int]("total")

	p := stone.Seq("lengths",
		stone.Func0("read", list, func(context.Context) (words, error) {
			return words{[]string{"ashlar", "", "lintel"}}, nil
		}),
		stone.Map("each-word", dag.Derive(list, func(w words) []string { return w.List }), word,
			stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) {
				if w == "" {
					return 0, errors.New("empty word")
				}
				return len(w), nil
			})),
		stone.Reduce(stone.Func("add", dag.Lanes(length), total, func(_ context.Context, all []int) (int, error) {
			sum := 0
			for _, n := range all {
				sum += n
			}
			return sum, nil
		})),
	)
	res, err := stone.Run(context.Background(), p, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	lost, err := dag.Lost(res.DAG)
	fmt.Println(res.Node.Text(), len(lost), err)
	// Output: 12 1 <nil>
}

// Three reviewers vote at the same time. One fails, but two are enough.
func ExampleParallel() {
	vote := dag.NewType[bool]("vote")
	verdict := dag.NewType[string]("verdict")
	says := func(name string, yes bool, err error) stone.Ashlar {
		return stone.Func0(name, vote, func(context.Context) (bool, error) { return yes, err })
	}
	p := stone.Seq("review",
		stone.Parallel("vote", says("ann", true, nil), says("bob", true, nil), says("eve", false, errors.New("no answer")), stone.Quorum(2)),
		stone.Reduce(stone.Func("count", dag.Lanes(vote), verdict, func(_ context.Context, votes []bool) (string, error) {
			return fmt.Sprint(votes), nil
		})),
	)
	result, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(result.Node.Text(), dag.CountLost(result.Lost), err)
	// Output: [true true] 1 of 3 lanes lost <nil>
}

// With AllLanes, one failed lane fails the fan-out.
func ExampleAllLanes() {
	part := dag.NewType[string]("part")
	p := stone.Seq("pair",
		stone.Parallel("both",
			stone.Func0("left", part, func(context.Context) (string, error) { return "L", nil }),
			stone.Func0("right", part, func(context.Context) (string, error) { return "", stone.Fail("absent", "there is no right") }),
			stone.AllLanes()),
		stone.Reduce(stone.Func("join", dag.Lanes(part), part, func(_ context.Context, parts []string) (string, error) {
			return strings.Join(parts, ""), nil
		})))
	_, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(err)
	// Output: lanes-failed at pair/both: 1 of 2 lanes survived, want at least 2; lane 1: there is no right
}

// The step that joins a fan-out reads one row for each surviving lane.
func ExampleReduce() {
	city := dag.NewType[string]("city")
	degrees := dag.NewType[int]("degrees")
	warmest := dag.NewType[string]("warmest")
	cities := dag.NewType[[]string]("cities")
	p := stone.Seq("weather",
		stone.Map("each-city", cities, city,
			stone.Func("measure", city, degrees, func(_ context.Context, name string) (int, error) { return len(name), nil }),
			stone.Lanes(2)),
		stone.Reduce(stone.Func("compare", dag.Lanes2(city, degrees), warmest, func(_ context.Context, all []dag.Row2[string, int]) (string, error) {
			best := all[0]
			for _, one := range all {
				if one.B > best.B {
					best = one
				}
			}
			return best.A, nil
		})),
	)
	text, err := stone.Produce(context.Background(), p, warmest, stone.Config{Input: dag.Of(cities.With([]string{"Bern", "Lisbon", "Oslo"}))})
	fmt.Println(text, err)
	// Output: Lisbon <nil>
}
