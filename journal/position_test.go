package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

type people func(ask.Question) string

func (p people) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: p(q)}, nil
}

// TestAgain does a step of a finished run again: its question is asked again, what reads its node is
// done again if that changed, and what does not read it is not. Later resumes keep the new results.
func TestAgain(t *testing.T) {
	word, length, other := dag.NewType[string]("word"), dag.NewType[int]("length"), dag.NewType[string]("other")
	asked, measured, apart := 0, 0, 0
	response := `"a"`
	p := stone.Seq("all",
		stone.Func0("apart", other, func(context.Context) (string, error) { apart++; return "x", nil }),
		stone.Ask("word", dag.Nothing, word, func(struct{}) string { return "Which word?" }),
		stone.Func("length", word, length, func(ctx context.Context, w string) (int, error) {
			measured++
			return stone.Step(ctx, "len", w, func(_ context.Context, w string) (int, error) { return len(w), nil })
		}),
	)
	memory := memdb.New(t)
	run := func(again ...string) string {
		t.Helper()
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{Again: again}),
			Frontend: people(func(ask.Question) string { asked++; return response })})
		if err != nil {
			t.Fatal(err)
		}
		return result.Node.JSON()
	}
	want := func(what, node string, asks, measures int) {
		t.Helper()
		if node != what || asked != asks || measured != measures || apart != 1 {
			t.Errorf("got %s after %d questions, %d measurements and %d other steps; want %s, %d, %d and 1", node, asked, measured, apart, what, asks, measures)
		}
	}
	want("1", run(), 1, 1)
	response = `"abc"`
	want("1", run(), 1, 1)
	want("3", run("all/word"), 2, 2)
	want("3", run(), 2, 2)
	want("3", run("all/length"), 2, 3)
	response = `"abcde"`
	want("5", run("all/word"), 3, 4)
	want("5", run(), 3, 4)
	info, err := memory.Find(t.Context(), "r")
	if err != nil || len(info.Again) != 3 {
		t.Errorf("the run names %v as done again, %v; want the three steps", info.Again, err)
	}
	p = stone.Seq("all", stone.Func0("apart", other, func(context.Context) (string, error) { return "x", nil }))
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{Again: []string{"all/apart"}})}); !errors.As(err, new(*journal.ChangedError)) {
		t.Errorf("another pipeline, with a step to do again: %v, want a ChangedError", err)
	}
}

// TestAgainIsRecorded changes the input of a plain step after the step was done again: the new record is
// the truth of its place, as the first one was.
func TestAgainIsRecorded(t *testing.T) {
	word, length := dag.NewType[string]("word"), dag.NewType[int]("length")
	add, effects := "", 0
	waits := true
	p := stone.Seq("all",
		stone.Ask("word", dag.Nothing, word, func(struct{}) string { return "Which word?" }),
		stone.Func("length", word, length, func(ctx context.Context, w string) (int, error) {
			n, err := stone.Step(ctx, "pay", w+add, func(_ context.Context, w string) (int, error) { effects++; return len(w), nil })
			if err == nil && waits {
				err = stone.Fail(kind.Waiting, "for the test")
			}
			return n, err
		}),
	)
	memory := memdb.New(t)
	response := `"a"`
	var problems []string
	want := func(what string, opts journal.Options, of kind.Kind, n int) {
		t.Helper()
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory, opts),
			Frontend: people(func(q ask.Question) string { problems = append(problems, q.Problem); return response })})
		if (of == "" && err != nil) || of != "" && !errors.Is(err, of) || effects != n {
			t.Errorf("%s: %v after %d effects, want the failure %q after %d", what, err, effects, of, n)
		}
	}
	want("at first", journal.Options{}, kind.Waiting, 1)
	response = `"abc"`
	want("the word again", journal.Options{Again: []string{"all/word"}}, kind.Waiting, 2)
	want("resumed", journal.Options{}, kind.Waiting, 2)
	add = "!"
	want("a changed program", journal.Options{}, kind.Replay, 2)
	want("the same, forced", journal.Options{Force: true}, kind.Waiting, 2)
	response = `"abcd"`
	want("the word once more", journal.Options{Again: []string{"all/word"}}, kind.Waiting, 3)
	add = "?"
	want("changed once more", journal.Options{}, kind.Replay, 3)
	waits = false
	want("finished with force", journal.Options{Force: true}, "", 3)
	if again := "the step is done again"; !slices.Equal(problems, []string{"", again, again}) {
		t.Errorf("the person was told %q, want that the step is done again, twice", problems)
	}
}

// An input that was replaced by force, and then given again, is the input of the run: a run that continues
// and whoever reads it later get that one.
func TestInputAgain(t *testing.T) {
	j := memdb.New(t)
	text := dag.NewType[string]("text")
	waits := true
	p := stone.Seq("p", stone.Func("leaf", text, dag.NewType[string]("said"), func(_ context.Context, s string) (string, error) { return "got " + s, nil }),
		stone.Func0("wait", dag.NewType[int]("number"), func(context.Context) (int, error) {
			if waits {
				return 0, stone.Fail(kind.Waiting, "for the test")
			}
			return 1, nil
		}))
	for _, in := range []string{"A", "B", "A", "B", ""} {
		cfg := stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Force: true})}
		want := "B"
		if in != "" {
			cfg.Input, want = dag.Of(text.With(in)), in
		}
		result, err := stone.Run(t.Context(), p, cfg)
		if !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		if got, err := dag.NewType[string]("said").From(result.DAG); err != nil || got != "got "+want {
			t.Errorf("input %q: the run said %q, %v", in, got, err)
		}
		info, err := j.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		input, err := journal.Input(t.Context(), j, info)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := text.From(input); err != nil || got != want {
			t.Errorf("input %q: the journal has the input %q, %v", in, got, err)
		}
	}
}

// overtaken answers a question in between, as another person may.
type overtaken struct{ *sqlite.DB }

func (o overtaken) Answer(ctx context.Context, run, path string, a ask.Answer) error {
	if err := o.DB.Answer(ctx, run, path, ask.Answer{Response: `"b"`}); err != nil {
		return err
	}
	return o.DB.Answer(ctx, run, path, a)
}

// Of two people who answer a question at once, the second one hears that it is answered.
func TestAnswerOvertaken(t *testing.T) {
	p := stone.Ask("word", dag.Nothing, dag.NewType[string]("word"), func(struct{}) string { return "Which word?" })
	memory := overtaken{memdb.New(t)}
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory.DB, journal.Options{})}); err == nil {
		t.Fatal("the run does not wait")
	}
	if err := journal.Answer(t.Context(), memory, "r", "word", ask.Answer{Response: `"a"`}); !errors.Is(err, journal.ErrAnswered) {
		t.Errorf("the second answer: %v, want ErrAnswered", err)
	}
}
