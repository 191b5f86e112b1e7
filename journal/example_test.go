package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

// A run that failed is started again under its id. What had a result is not done again.
func ExampleKeep() {
	page, summary := dag.NewType[string]("page"), dag.NewType[string]("summary")
	down := true
	p := stone.Seq("summarise",
		stone.Func0("fetch", page, func(context.Context) (string, error) {
			fmt.Println("fetching")
			return "a page about marble", nil
		}),
		stone.Func("sum-up", page, summary, func(_ context.Context, text string) (string, error) {
			if down {
				return "", errors.New("the model is down")
			}
			return strings.ToUpper(text), nil
		}))
	// A file keeps the runs for the next process: sqlite.Open("stone.db", sqlite.Options{}).
	j, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	for _, down = range []bool{true, false} {
		result, err := stone.Run(context.Background(), p, stone.Config{RunID: "monday", Recorder: journal.Keep(j, journal.Options{})})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(result.Node.Text())
	}
	// Output:
	// fetching
	// error at summarise/sum-up: the model is down
	// A PAGE ABOUT MARBLE
}

// A run waits for a person without a process. It continues when it is started again with the answer.
func ExampleAnswer() {
	ctx := context.Background()
	plan, approval := dag.NewType[string]("plan"), dag.NewType[stone.Answer]("approval")
	p := stone.Ask("approve", plan, approval, func(text string) string { return text + "?" }, stone.Choices("yes", "no"))
	j, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	cfg := stone.Config{RunID: "deploy", Input: dag.Of(plan.With("Deploy 1.2")), Recorder: journal.Keep(j, journal.Options{})}

	_, err = stone.Run(ctx, p, cfg)
	fmt.Println("waits:", errors.Is(err, kind.Waiting))

	for q, err := range j.EachQuestion(ctx, journal.QuestionQuery{Open: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(q.Text, q.Choices)
	}
	fmt.Println(journal.Answer(ctx, j, "deploy", "approve", ask.Answer{Response: "maybe", By: "ann"}))
	fmt.Println(journal.Answer(ctx, j, "deploy", "approve", ask.Answer{Response: "yes", By: "ann"}))

	result, err := stone.Run(ctx, p, cfg)
	fmt.Println(result.Node.JSON(), err)
	// Output:
	// waits: true
	// Deploy 1.2? [yes no]
	// "maybe" is not an answer to "approve": want one of: yes, no
	// <nil>
	// {"response":"yes"} <nil>
}

// Two runs are compared step by step: what differs, and whether it read something else.
func ExampleDiff() {
	ctx := context.Background()
	word, length := dag.NewType[string]("word"), dag.NewType[int]("length")
	p := stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) { return len(w), nil })
	j, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	for id, w := range map[string]string{"a": "ashlar", "b": "arch"} {
		if _, err := stone.Run(ctx, p, stone.Config{RunID: id, Input: dag.Of(word.With(w)), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
			fmt.Println(err)
		}
	}
	found, err := journal.Diff(ctx, j, "a", "b")
	for _, d := range found {
		fmt.Println(d.Path, d.Why)
	}
	fmt.Println(err)
	// Output:
	// input ["word" changed from «ashlar» to «arch»]
	// measure [it reads another "word"]
	// <nil>
}

// A secret that a step gets to know stands nowhere in the records.
func ExampleSecret() {
	ctx := context.Background()
	reply := dag.NewType[string]("reply")
	p := stone.Func0("log-in", reply, func(ctx context.Context) (string, error) {
		token := "tok-3141592653"
		if err := journal.Secret(ctx, token); err != nil {
			return "", err
		}
		return "logged in with " + token, nil
	})
	j, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	result, err := stone.Run(ctx, p, stone.Config{RunID: "a", Recorder: journal.Keep(j, journal.Options{})})
	fmt.Println(result.Node.Text(), err)
	// Output: logged in with [redacted] <nil>
}
