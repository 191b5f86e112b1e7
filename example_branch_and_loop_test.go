package stone_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A value computed from an earlier node selects the branch.
func ExampleMatch() {
	size := dag.NewType[int]("size")
	route := dag.NewType[string]("route")
	by := func(name string) stone.Ashlar {
		return stone.Func0(name, route, func(context.Context) (string, error) { return "by " + name, nil })
	}
	p := stone.Match("ship", stone.On(size, func(kg int) string {
		if kg > 30 {
			return "heavy"
		}
		return "light"
	}), stone.Case("heavy", by("truck")), stone.Case("light", by("bike")))
	for _, kg := range []int{2, 200} {
		text, err := stone.Produce(context.Background(), p, route, stone.Config{Input: dag.Of(size.With(kg))})
		fmt.Println(text, err)
	}
	// Output:
	// by bike <nil>
	// by truck <nil>
}

// A draft is improved until it is short enough, at most four times. Each round reads the draft of the previous round.
func ExampleLoop() {
	draft := dag.NewType[string]("draft")
	p := stone.Seq("write",
		stone.Func0("first", draft, func(context.Context) (string, error) { return "a very very long draft", nil }),
		stone.Loop("shorten",
			stone.Func("cut", draft, draft, func(_ context.Context, text string) (string, error) {
				return strings.Replace(text, "very ", "", 1), nil
			}),
			stone.Until(draft, func(text string) bool { return len(text) <= 12 }), 4),
	)
	text, err := stone.Produce(context.Background(), p, draft, stone.Config{})
	fmt.Println(text, err)
	// Output: a long draft <nil>
}

// The body runs its child as often as needed. The walk declares this to the validator.
func ExampleScoped() {
	guess := dag.NewType[int]("guess")
	once := stone.Func("double", guess, guess, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	p := stone.Scoped("until-large", stone.Walk{}.Repeat(once), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		for {
			n, err := guess.From(d)
			if err != nil || n > 100 {
				return d, err
			}
			if d = stone.In(ctx).RunChild(once, d); d.Failed() {
				return d, d.Cause()
			}
		}
	}, guess)
	n, err := stone.Produce(context.Background(), p, guess, stone.Config{Input: dag.Of(guess.With(5))})
	fmt.Println(n, err)
	// Output: 160 <nil>
}
