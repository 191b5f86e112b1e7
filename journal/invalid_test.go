package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/journal"
)

// TestInvalidIsNotRecorded: an invalid pipeline leaves no run, also if its input is the DAG of a failed
// run, below which no pipeline starts.
func TestInvalidIsNotRecorded(t *testing.T) {
	broken := stone.Func0("broken", dag.NewType[int]("n"), func(context.Context) (int, error) { return 0, errors.New("broken") })
	failed, err := stone.Run(t.Context(), broken, stone.Config{})
	if err == nil {
		t.Fatal("the first run must fail")
	}
	needs := stone.Func("needs", dag.NewType[string]("absent"), dag.NewType[int]("m"), func(context.Context, string) (int, error) { return 0, nil })
	for name, input := range map[string]dag.DAG{"no input": {}, "the DAG of a failed run": failed.DAG} {
		j := new(journal.Memory)
		_, err := stone.Run(t.Context(), needs, stone.Config{RunID: "r", Input: input, Recorder: journal.Keep(j, journal.Options{})})
		if !errors.As(err, new(*finding.Invalid)) {
			t.Errorf("%s: got %v, want the findings", name, err)
		}
		if _, err := j.Find(t.Context(), "r"); !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("%s: the run was recorded: %v", name, err)
		}
		if _, err := j.Acquire(t.Context(), "r"); err != nil {
			t.Errorf("%s: the run was not released: %v", name, err)
		}
	}
}
