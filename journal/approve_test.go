package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

// An approval belongs to one call, by its id and its arguments. A program that asks about
// another one in its place asks again, also if the answer stood.
func TestApprovalOfOneCall(t *testing.T) {
	decided := dag.NewType[string]("decided")
	refund := func() ask.Question {
		return ask.Question{
			Name: "support/refund", Text: "support wants to call refund", Choices: []string{"yes", "no"},
			Call: &ask.Call{ID: "call-1", Tool: "refund", Input: json.RawMessage(`{"amount":39,"order":7}`)},
		}
	}
	for name, tt := range map[string]struct {
		change func(q *ask.Question)
		asks   bool
	}{
		"the same":              {func(*ask.Question) {}, false},
		"another id":            {func(q *ask.Question) { q.Call.ID = "call-2" }, true},
		"other arguments":       {func(q *ask.Question) { q.Call.Input = json.RawMessage(`{"amount":3900,"order":7}`) }, true},
		"another tool":          {func(q *ask.Question) { q.Call.Tool = "refund_all" }, true},
		"no call":               {func(q *ask.Question) { q.Call = nil }, true},
		"another text":          {func(q *ask.Question) { q.Text += " now" }, true},
		"other choices":         {func(q *ask.Question) { q.Choices = []string{"yes", "no", "later"} }, true},
		"what is no part of it": {func(q *ask.Question) { q.Call.Request, q.Call.Said = "please", "I will" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := memdb.New(t)
			run := func(q ask.Question) error {
				p := stone.Func0("tool-1-1", decided, func(ctx context.Context) (string, error) { return stone.In(ctx).Ask(q) })
				_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
				return err
			}
			if err := run(refund()); !errors.Is(err, kind.Waiting) {
				t.Fatal(err)
			}
			shown := question(t, j)
			if err := journal.Answer(t.Context(), j, "r", "1", ask.Answer{Response: "yes", By: "user ada"}); err != nil {
				t.Fatal(err)
			}
			other := refund()
			tt.change(&other)
			err := run(other)
			if !tt.asks {
				if q := question(t, j); err != nil || q.By != "user ada" || q.Call == nil || q.Call.ID != "call-1" {
					t.Errorf("%v, %+v; want that the answer counts", err, q)
				}
				return
			}
			q := question(t, j)
			if !errors.Is(err, kind.Waiting) || !q.Open() || q.By != "" || q.Problem == "" || q.Text != other.Text {
				t.Fatalf("%v, %+v; want that the other question is open", err, q)
			}
			// An answer to the question that was shown first comes too late.
			late := ask.Answer{Response: "yes", To: shown.Version}
			if err := journal.Answer(t.Context(), j, "r", "1", late); !errors.Is(err, journal.ErrAsksOther) {
				t.Errorf("an answer to the earlier question: %v", err)
			}
			late.To = q.Version
			if err := journal.Answer(t.Context(), j, "r", "1", late); err != nil || run(other) != nil {
				t.Errorf("an answer to the later question: %v", err)
			}
		})
	}
}

func question(t *testing.T, j *sqlite.DB) journal.Question {
	t.Helper()
	all, err := j.Questions(t.Context(), "r")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}
