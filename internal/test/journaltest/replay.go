package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// testReplayOfDone replays a run that is done, and disturbs the replay in several ways. The run's outcome and records must not
// change.
func testReplayOfDone(t *testing.T, j tested) {
	var c counter
	p := stone.Seq("all", c.leaf("first", draft, ok), c.leaf("second", final, ok))
	mustRun(t, j, p, journal.Options{})
	want, last := ended(t, j)
	check := func(what string) {
		t.Helper()
		if got, at := ended(t, j); at != last || !cmp.Equal(want, got, cmpopts.EquateComparable(dag.DAG{})) {
			t.Errorf("%s: %d records, want %d (-want +got):\n%s", what, at, last, cmp.Diff(want, got, cmpopts.EquateComparable(dag.DAG{})))
		}
		c.want(t, "first:1 second:1")
	}
	mustRun(t, j.open(), p, journal.Options{Pipeline: "another name"})
	check("replayed")

	dead := j.open()
	_, err := dead.Acquire(t.Context(), "run")
	must(t, err)
	check("replayed by a process that died")
	must(t, dead.Release("run"))

	drain := make(chan struct{})
	close(drain)
	if _, err := run(t, j, p, journal.Options{Drain: drain}); !errors.Is(err, journal.ErrDrained) {
		t.Errorf("drained: %v", err)
	}
	check("drained")

	ctx, cancel := context.WithCancel(t.Context())
	cfg := kept(config(), canceling{j, cancel}, journal.Options{})
	if _, err := stone.Run(ctx, p, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	check("canceled")

	_, err = j.Acquire(t.Context(), "run")
	must(t, err)
	_, err = j.Do(t.Context(), key("other"), func(context.Context) (step.Record, error) { c.add("other"); return value("x"), nil })
	if !errors.Is(err, journal.ErrDone) {
		t.Errorf("a step that the run did not do: %v, want ErrDone", err)
	}
	must(t, j.Release("run"))
	check("replayed by a program that does other steps")

	mustRun(t, j.open(), p, journal.Options{Force: true, Pipeline: "another name"})
	if got, _ := ended(t, j); got.Pipeline != "another name" {
		t.Errorf("forced: %+v, want that it was started again", got)
	}
}

// ended returns the description of a run that has no holder, and the number of its records.
func ended(t *testing.T, j journal.Journal) (journal.RunInfo, int64) {
	t.Helper()
	info, err := j.Find(t.Context(), "run")
	must(t, err)
	last, err := j.Last(t.Context(), "run")
	must(t, err)
	info.Owner = "" // set by a replay
	return info, last
}

// canceling is a journal that cancels the run at its first step.
type canceling struct {
	journal.Journal
	cancel context.CancelFunc
}

func (c canceling) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	c.cancel()
	return c.Journal.Do(ctx, key, work)
}
