package stone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// Three reviewers vote at the same time. One fails, and two are enough.
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

// With AllLanes, a lane that fails ends the fan-out.
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

// A draft is improved until it is short enough, four times at most. Each round reads the draft of the
// round before it.
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

// What a failed step leaves is read by the step that heals.
func ExampleRescue() {
	price := dag.NewType[int]("price")
	p := stone.Rescue("price",
		stone.Func0("ask-shop", price, func(context.Context) (int, error) { return 0, stone.Fail("closed", "the shop is closed") }),
		stone.Func("estimate", dag.Failure, price, func(_ context.Context, f dag.FailureContent) (int, error) {
			fmt.Println("healing:", f.Reason)
			return 40, nil
		}))
	result, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(result.Node.Text(), err)
	// Output:
	// healing: the shop is closed
	// 40 <nil>
}

// A branch is chosen by a value that is computed from an earlier node.
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

// A body runs its child as often as it needs. The walk tells the validator about it.
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

// Parts of a body are recorded by themselves. The second process fails no more, and does not charge again.
func ExampleStep() {
	receipt := dag.NewType[string]("receipt")
	down := true
	order := stone.Func0("order", receipt, func(ctx context.Context) (string, error) {
		id, err := stone.Step(ctx, "charge", 12.50, func(_ context.Context, usd float64) (string, error) {
			fmt.Println("charging", usd)
			return "charge-1", nil
		})
		if err != nil {
			return "", err
		}
		if down {
			return "", errors.New("the shop is down")
		}
		return "sent, " + id, nil
	})
	recorder := journal.Keep(new(journal.Memory), journal.Options{})
	for _, down = range []bool{true, false} {
		result, err := stone.Run(context.Background(), order, stone.Config{RunID: "order-7", Recorder: recorder})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(result.Node.Text())
	}
	// Output:
	// charging 12.5
	// error at order: the shop is down
	// sent, charge-1
}

// What an earlier run found for the same input is taken from there.
func ExampleReusable() {
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	measure := stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) {
		fmt.Println("measuring", w)
		return len(w), nil
	}, stone.Version("1"), stone.Reusable())
	recorder := journal.Keep(new(journal.Memory), journal.Options{Reuse: journal.AnyRun})
	for _, w := range []string{"ashlar", "lintel", "ashlar"} {
		n, err := stone.Produce(context.Background(), measure, length, stone.Config{Input: dag.Of(word.With(w)), Recorder: recorder})
		fmt.Println(n, err)
	}
	// Output:
	// measuring ashlar
	// 6 <nil>
	// measuring lintel
	// 6 <nil>
	// 6 <nil>
}
