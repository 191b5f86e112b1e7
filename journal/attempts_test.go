package journal_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// A leaf may be allowed any number of attempts: a resumed run looks up those that were made.
func TestManyAttemptsAllowed(t *testing.T) {
	j := memdb.New(t)
	for round := range 3 {
		done := false
		leaf := stone.Func0("leaf", dag.NewType[int]("leaf"), func(ctx context.Context) (int, error) {
			for i := range round + 1 {
				if _, err := stone.Step(ctx, fmt.Sprint("step ", i), i, func(context.Context, int) (int, error) { return i, nil }); err != nil {
					return 0, err
				}
			}
			if done = round == 2; !done {
				return 0, stone.Fail(kind.Canceled, "stopped")
			}
			return 1, nil
		}, stone.Retry{Attempts: math.MaxInt})
		_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: round > 0, Force: true})})
		if done != (err == nil) {
			t.Fatalf("visit %d: %v", round, err)
		}
	}
}

// A step of the second inner attempt in the first outer one is found by the first inner attempt in the second outer one.
func TestNestedAttempts(t *testing.T) {
	j := memdb.New(t)
	var visit, outer, inner, done int
	again := func() error { return stone.Fail(kind.Error, "again") }
	within := stone.Func0("inner", dag.NewType[int]("inner"), func(ctx context.Context) (int, error) {
		if inner++; visit == 0 && inner == 1 {
			return 0, again()
		}
		_, err := stone.Step(ctx, "step", 1, func(context.Context, int) (int, error) { done++; return 1, nil })
		if err == nil && visit == 0 {
			err = again()
		}
		return 1, err
	}, stone.Retry{Attempts: 2})
	leaf := stone.New("leaf", dag.NewType[int]("leaf"), func(ctx context.Context, d dag.DAG) (int, error) {
		switch outer++; {
		case visit == 0 && outer == 2:
			return 0, stone.Fail(kind.Canceled, "stopped")
		case visit == 1 && outer == 1:
			return 0, again()
		}
		lane := stone.In(ctx).RunDynamic(within, d, []string{})
		if lane.Failed() {
			return 0, lane.Cause()
		}
		return 1, nil
	}, stone.Retry{Attempts: 2})
	for visit = range 2 {
		outer, inner = 0, 0
		_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: visit > 0})})
		if (visit == 1) != (err == nil) {
			t.Fatalf("visit %d: %v", visit, err)
		}
	}
	if done != 1 {
		steps, _ := j.Steps(t.Context(), "r")
		for _, s := range steps {
			t.Log(s.Path)
		}
		t.Errorf("the step ran %d times, want 1", done)
	}
}

// A leaf that a step has made belongs to that step: an attempt that makes its steps in another order finds it.
func TestDynamicBelowStep(t *testing.T) {
	j := memdb.New(t)
	done := 0
	within := stone.Func0("inner", dag.NewType[int]("inner"), func(context.Context) (int, error) { done++; return 1, nil })
	for visit := range 2 {
		tries := 0
		leaf := stone.New("leaf", dag.NewType[int]("leaf"), func(ctx context.Context, d dag.DAG) (int, error) {
			order := []int{1, 2}
			if tries++; visit == 1 {
				if order = []int{2, 1}; tries == 1 {
					return 0, stone.Fail(kind.Error, "again")
				}
			}
			for _, n := range order {
				_, err := stone.Step(ctx, "step", n, func(ctx context.Context, n int) (int, error) {
					if n == 1 {
						return 1, nil
					}
					lane := stone.In(ctx).RunDynamic(within, d, []string{})
					if lane.Failed() {
						return 0, lane.Cause()
					}
					if visit == 0 {
						return 0, stone.Fail(kind.Canceled, "stopped")
					}
					return 1, nil
				})
				if err != nil {
					return 0, err
				}
			}
			return 1, nil
		}, stone.Retry{Attempts: 2})
		_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: visit > 0})})
		if (visit == 1) != (err == nil) {
			t.Fatalf("visit %d: %v", visit, err)
		}
	}
	if done != 1 {
		t.Errorf("the leaf ran %d times, want 1", done)
	}
}

// reads counts the records that a journal looks up.
type reads struct {
	*sqlite.DB
	n int
}

func (r *reads) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind == "step" {
		r.n++
	}
	return r.DB.Do(ctx, key, work)
}

// A recorded step of a retried leaf is read once.
func TestReplayReadsOnce(t *testing.T) {
	j := &reads{DB: memdb.New(t)}
	for visit := range 2 {
		leaf := stone.Func0("leaf", dag.NewType[int]("leaf"), func(ctx context.Context) (int, error) {
			n, err := stone.Step(ctx, "step", 1, func(context.Context, int) (int, error) { return 1, nil })
			if visit == 0 {
				err = stone.Fail(kind.Canceled, "stopped")
			}
			return n, err
		}, stone.Retry{Attempts: 2})
		j.n = 0
		_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: visit > 0})})
		if (visit == 1) != (err == nil) || j.n != 1 {
			t.Errorf("visit %d: %d reads, %v", visit, j.n, err)
		}
	}
}
