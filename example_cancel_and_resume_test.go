package stone_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// A run ends when its context is cancelled. Resuming it does not repeat the steps that were recorded before.
func ExampleRun_cancel() {
	word := dag.NewType[string]("word")
	ctx, cancel := context.WithCancel(context.Background())
	p := stone.Seq("work",
		stone.Func0("first", word, func(context.Context) (string, error) {
			fmt.Println("first")
			return "done", nil
		}),
		stone.Func("second", word, word, func(ctx context.Context, w string) (string, error) {
			cancel()
			return w, ctx.Err()
		}),
	)
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	recorder := journal.Keep(db, journal.Options{})
	_, err = stone.Run(ctx, p, stone.Config{RunID: "w-1", Recorder: recorder})
	fmt.Println(errors.Is(err, context.Canceled))
	_, err = stone.Run(context.Background(), p, stone.Config{RunID: "w-1", Recorder: recorder})
	fmt.Println(err)
	// Output:
	// first
	// true
	// <nil>
}

// A resumed run with a journal continues where it stopped: here, the second run does not charge again.
func ExampleRun_resume() {
	charge, receipt := dag.NewType[string]("charge"), dag.NewType[string]("receipt")
	down := true
	order := stone.Seq("order",
		stone.Func0("charge", charge, func(context.Context) (string, error) {
			fmt.Println("charging")
			return "charge-1", nil
		}),
		stone.Func("send", charge, receipt, func(_ context.Context, id string) (string, error) {
			if down {
				return "", errors.New("the shop is down")
			}
			return "sent, " + id, nil
		}),
	)
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	recorder := journal.Keep(db, journal.Options{})
	for _, down = range []bool{true, false} {
		text, err := stone.Produce(context.Background(), order, receipt, stone.Config{RunID: "order-7", Recorder: recorder})
		fmt.Printf("%q %v\n", text, err)
	}
	// Output:
	// charging
	// "" error at order/send: the shop is down
	// "sent, charge-1" <nil>
}

// A Step records a part of a body. Here, the second run succeeds without charging again.
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
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	recorder := journal.Keep(db, journal.Options{})
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

// A value that would differ each time is computed once and recorded: a resumed run sees the same value.
func ExampleValue() {
	code := dag.NewType[string]("code")
	n := 0
	draw := stone.Func0("draw", code, func(ctx context.Context) (string, error) {
		return stone.Value(ctx, "number", func(context.Context) (string, error) {
			n++
			return fmt.Sprint("code-", n), nil
		})
	})
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	recorder := journal.Keep(db, journal.Options{})
	for range 2 {
		fmt.Println(stone.Produce(context.Background(), draw, code, stone.Config{RunID: "r-1", Recorder: recorder}))
	}
	// Output:
	// code-1 <nil>
	// code-1 <nil>
}

// A reusable leaf takes its result from an earlier run with the same input.
func ExampleReusable() {
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	measure := stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) {
		fmt.Println("measuring", w)
		return len(w), nil
	}, stone.Version("1"), stone.Reusable())
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	recorder := journal.Keep(db, journal.Options{Reuse: journal.AnyRun})
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
