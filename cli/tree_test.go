package cli

import (
	"testing"

	"github.com/stonelayer/stone/budget"
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
	p := newTreePrinter(journal.RunInfo{Outcome: journal.Outcome{State: journal.Interrupted}}, []journal.Question{{Path: "all/agent/tool-2-1", Response: "yes", By: "user ada", Answered: steps[0].Started.AddDate(1, 0, 0)}}, true, 0)
	p.print(treeOf(steps, nil).below, 0)
	got := map[string]string{}
	for i, name := range p.columns[0].cells {
		got[name] = p.columns[5].cells[i]
	}
	for name, want := range map[string]string{
		"  ✓ agent": "", "    ✓ turn-1": "", "    ✓ turn-2": "possibly paid once more", "    ✓ tool-2-1": "answered yes by user ada", "  … post": "possibly paid once",
	} {
		if note, ok := got[name]; !ok || note != want {
			t.Errorf("%s has the note %q, want %q, in %q", name, note, want, got)
		}
	}
}
