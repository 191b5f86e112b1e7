package cli

import (
	"context"
	"iter"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// What was in flight is marked, and not the steps around it that started again.
func TestPossiblyPaidNotes(t *testing.T) {
	call := budget.Amount{Roundtrips: 1, USD: 0.01}
	lost := budget.Possible{}.Start(call)
	steps := []journal.Step{
		{Path: "all/agent", Kind: "leaf", Attempts: 3, Recorded: true},
		{Path: "all/agent/turn-1", Kind: "step", Attempts: 1, Recorded: true, Declared: call},
		{Path: "all/agent/turn-2", Kind: "step", Attempts: 2, Recorded: true, Declared: call, Possible: lost},
		{Path: "all/agent/tool-2-1", Kind: "step", Attempts: 2, Recorded: true}, // it waited for an approval
		{Path: "all/post", Kind: "leaf", Attempts: 1},
	}
	questions := []journal.Question{{Path: "all/agent/tool-2-1", Response: "yes", By: "user ada", Answered: steps[0].Started.AddDate(1, 0, 0)}}
	run, err := view.Read(t.Context(), recorded{steps: steps, questions: questions}, journal.RunInfo{ID: "r", Outcome: journal.Outcome{State: journal.Interrupted}}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := newTreePrinter(run, true, 0)
	if err := p.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range p.rows {
		got[row[0]] = row[5]
	}
	for name, want := range map[string]string{
		"  ✓ agent": "", "    ✓ turn-1": "", "    ✓ turn-2": "possibly paid once more", "    ✓ tool-2-1": "answered yes by user ada", "  … post": "possibly paid once",
	} {
		if note, ok := got[name]; !ok || note != want {
			t.Errorf("%s has the note %q, want %q, in %q", name, note, want, got)
		}
	}
}

// recorded is a journal of one run.
type recorded struct {
	journal.Journal
	steps     []journal.Step
	questions []journal.Question
}

func (r recorded) Steps(context.Context, string) ([]journal.Step, error) { return r.steps, nil }
func (r recorded) EachQuestion(context.Context, journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	return func(yield func(journal.Question, error) bool) {
		for _, q := range r.questions {
			if !yield(q, nil) {
				return
			}
		}
	}
}
