package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// testLostQuestion runs a leaf that asks a question in one of two lanes but uses the answer of the other lane, like a race. As
// soon as the leaf has a result, the question must be closed, both in the same process and after the run was resumed.
func testLostQuestion(t *testing.T, j tested) {
	wins := true
	p := stone.Seq("all",
		stone.New("race", draft, func(ctx context.Context, _ dag.DAG) (string, error) {
			if wins && stone.In(ctx).RunID() == "resumed" {
				return "the other lane", nil // the other lane wins before this one asks again
			}
			_, err := stone.Step(ctx, "person", nil, func(ctx context.Context, _ any) (string, error) {
				return stone.In(ctx).Ask(ask.Question{Name: "person", Text: "Which one?"})
			})
			if !errors.Is(err, kind.Waiting) || !wins {
				return "", err
			}
			return "the other lane", nil
		}),
		stone.Ask("sure", draft, reply, func(text string) string { return "Is it " + text + "?" }),
	)
	for _, id := range []string{"run", "resumed"} {
		cfg := config()
		cfg.RunID = id
		if wins = id == "run"; !wins {
			_, err := stone.Run(t.Context(), p, kept(cfg, j, journal.Options{}))
			if open, _ := openQuestions(t.Context(), j); !errors.Is(err, kind.Waiting) || len(open) != 1 || open[0].Name != "person" {
				t.Fatalf("%v, with the open questions %+v", err, open)
			}
			wins = true
		}
		_, err := stone.Run(t.Context(), p, kept(cfg, j.open(), journal.Options{}))
		open, failed := openQuestions(t.Context(), j)
		if must(t, failed); !errors.Is(err, kind.Waiting) || len(open) != 1 || open[0].Name != "sure" {
			t.Fatalf("run %s: %v, with the open questions %+v; want only the one after the race", id, err, open)
		}
		must(t, journal.Answer(t.Context(), j, id, "sure", ask.Answer{Response: "yes"}))
		if info, err := j.Find(t.Context(), id); err != nil || info.State != journal.Answered {
			t.Errorf("run %s is %s, %v; want it answered", id, info.State, err)
		}
		result, err := stone.Run(t.Context(), p, kept(cfg, j.open(), journal.Options{}))
		must(t, err)
		if answer, err := reply.From(result.DAG); err != nil || answer.Response != "yes" {
			t.Errorf("run %s: %+v, %v", id, answer, err)
		}
	}
}

// testDeclined cancels a question. The run fails, and asks again when it is resumed.
func testDeclined(t *testing.T, j tested) {
	p := stone.Ask("sure", dag.Nothing, reply, func(struct{}) string { return "Sure?" }, stone.Choices("yes", "no"))
	for n, of := range []kind.Kind{kind.Waiting, kind.Declined, kind.Waiting, kind.Declined} {
		if n%2 == 1 {
			must(t, journal.Answer(t.Context(), j, "run", "sure", ask.Answer{}))
		}
		if _, err := run(t, j.open(), p, journal.Options{}); !errors.Is(err, of) {
			t.Fatalf("run %d: %v, want %s", n, err, of)
		}
	}
	cfg := config()
	told := ""
	cfg.Frontend = person(func(_ context.Context, q ask.Question) (string, error) { told = q.Problem; return "yes", nil })
	_, err := stone.Run(t.Context(), p, kept(cfg, j.open(), journal.Options{}))
	if err != nil || told != "it was cancelled" {
		t.Errorf("%v; the person is told %q", err, told)
	}
}
