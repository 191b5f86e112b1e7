package journaltest

import (
	"errors"
	"testing"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// testCanceled cancels waiting, refused and interrupted runs without their pipeline. Reserved amounts count as paid, work that is
// still in progress elsewhere does not, and the run can be resumed, because its questions are kept.
func testCanceled(t *testing.T, j tested) {
	var c counter
	p := question(&c)
	if err := journal.Cancel(t.Context(), j.open(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
	if _, err := run(t, j, p, journal.Options{}); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	before, err := j.Find(t.Context(), "run")
	must(t, err)
	must(t, journal.Cancel(t.Context(), j.open(), "run"))
	wantState(t, j, journal.Canceled)
	after, err := j.Find(t.Context(), "run")
	must(t, err)
	if after.Steps != before.Steps || after.Failure == nil || after.Failure.Kind != string(kind.Canceled) || after.Node != before.Node {
		t.Errorf("%+v, was %+v", after.Outcome, before.Outcome)
	}
	var state *journal.StateError
	if err := journal.Cancel(t.Context(), j, "run"); !errors.As(err, &state) || state.State != journal.Canceled {
		t.Errorf("again: %v", err)
	}
	if _, err := run(t, j, p, journal.Options{}); !errors.Is(err, kind.Waiting) {
		t.Errorf("resumed: %v", err)
	}
	must(t, journal.Answer(t.Context(), j, "run", "sure", ask.Answer{Response: "yes"}))
	must(t, journal.Cancel(t.Context(), j, "run")) // answered
	mustRun(t, j, p, journal.Options{})
	c.want(t, "first:1")
	if err := journal.Cancel(t.Context(), j, "run"); !errors.As(err, &state) || state.State != journal.Done {
		t.Errorf("a run that is done: %v", err)
	}

	begin(t, j, journal.RunInfo{ID: "held", Budgets: project(2)})
	if err := journal.Cancel(t.Context(), j.open(), "held"); !errors.As(err, new(*journal.HeldError)) {
		t.Errorf("a run that a process has: %v", err)
	}
	must(t, j.Release("held"))
	must(t, journal.Cancel(t.Context(), j.open(), "held"))
}
