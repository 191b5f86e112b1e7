package stone_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A step is a Go function between two types of nodes.
func ExampleFunc() {
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	measure := stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) { return len(w), nil })
	n, err := stone.Produce(context.Background(), measure, length, stone.Config{Input: dag.Of(word.With("ashlar"))})
	fmt.Println(n, err)
	// Output: 6 <nil>
}

// The body of New reads the DAG itself. Queries declares its reads to the validator.
func ExampleNew() {
	word := dag.NewType[string]("word")
	count := dag.NewType[int]("count")
	p := stone.New("count", count, func(_ context.Context, d dag.DAG) (int, error) {
		all, err := dag.All(word).From(d)
		return len(all), err
	}, stone.Queries(dag.All(word)), stone.Effects())
	n, err := stone.Produce(context.Background(), p, count, stone.Config{Input: dag.Of(word.With("a"), word.With("b"))})
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// Steps run one after the other. Each can read the nodes of the earlier steps.
func ExampleSeq() {
	page := dag.NewType[string]("page")
	title := dag.NewType[string]("title")
	p := stone.Seq("summary",
		stone.Func0("read", page, func(context.Context) (string, error) { return "stone: a wall", nil }),
		stone.Func("title", page, title, func(_ context.Context, text string) (string, error) {
			before, _, _ := strings.Cut(text, ":")
			return before, nil
		}),
	)
	text, err := stone.Produce(context.Background(), p, title, stone.Config{})
	fmt.Println(text, err)
	// Output: stone <nil>
}
