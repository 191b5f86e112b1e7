package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
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
		j := memdb.New(t)
		_, err := stone.Run(t.Context(), needs, stone.Config{RunID: "r", Input: input, Recorder: journal.Keep(j, journal.Options{})})
		if !errors.As(err, new(*stone.Invalid)) {
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

// canceling is a journal of which a run is cancelled while its beginning is written.
type canceling struct {
	*sqlite.DB
	cancel func()
}

func (c canceling) Begin(ctx context.Context, _ journal.RunInfo, _ dag.DAG) error {
	c.cancel()
	return fmt.Errorf("write: %w", ctx.Err())
}

// TestCanceledWhileItBegins: such a run is cancelled, not broken, and is released.
func TestCanceledWhileItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := canceling{memdb.New(t), cancel}
	p := stone.Func0("p", dag.NewType[int]("n"), func(context.Context) (int, error) { t.Error("a step started"); return 0, nil })
	_, err := stone.Run(ctx, p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
	if f, ok := errors.AsType[*stone.Failure](err); !ok || f.Kind != kind.Canceled {
		t.Errorf("got %v, want a failure of kind canceled", err)
	}
	if _, err := j.Acquire(t.Context(), "r"); err != nil {
		t.Errorf("the run was not released: %v", err)
	}
}
