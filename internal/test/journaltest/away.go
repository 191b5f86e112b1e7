package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// An away journal is not available any more once the given number of steps has been done.
type away struct {
	journal.Journal
	left atomic.Int64
}

var errAway = fmt.Errorf("the store was stopped: %w", journal.ErrUnavailable)

func (a *away) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if a.left.Add(-1) < 0 {
		return step.Record{}, errAway
	}
	return a.Journal.Do(ctx, key, work)
}

// testAway checks that a run that ends because the journal cannot be written does not count as failed. Wherever it stopped, it is
// interrupted, like the run of a dead process, and does not repeat anything when it is resumed.
func testAway(t *testing.T, j tested) {
	var calls [3]atomic.Int64
	types := []dag.Type[int]{dag.NewType[int]("first"), dag.NewType[int]("second"), dag.NewType[int]("third")}
	steps := make([]stone.Ashlar, len(types))
	for i, typ := range types {
		steps[i] = stone.Func0(fmt.Sprint("step-", i), typ, func(context.Context) (int, error) { calls[i].Add(1); return i, nil })
	}
	p := stone.Seq("all", steps...)
	for n := range len(steps) {
		for i := range calls {
			calls[i].Store(0)
		}
		cfg := config()
		cfg.RunID = fmt.Sprint("away-", n)
		store := &away{Journal: j}
		store.left.Store(int64(n))
		if _, err := stone.Run(t.Context(), p, kept(cfg, store, journal.Options{})); !errors.Is(err, kind.Recorder) {
			t.Fatalf("%s: %v", cfg.RunID, err)
		}
		if info, err := j.Find(t.Context(), cfg.RunID); err != nil || info.State != journal.Interrupted {
			t.Errorf("%s is %s, %v, want %s", cfg.RunID, info.State, err, journal.Interrupted)
		}
		_, err := stone.Run(t.Context(), p, kept(cfg, j.open(), journal.Options{Resume: true}))
		must(t, err)
		for i := range calls {
			if calls[i].Load() != 1 {
				t.Errorf("%s: step %d was done %d times", cfg.RunID, i, calls[i].Load())
			}
		}
	}
}
