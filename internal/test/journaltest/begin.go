package journaltest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// testResumeOnly checks that resuming a run that does not exist, or has been removed in the meantime, does not start a run.
func testResumeOnly(t *testing.T, j tested) {
	var c counter
	_, err := run(t, j, c.leaf("a", draft, ok), journal.Options{Resume: true})
	if !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Run: %v, want ErrNoRun", err)
	}
	c.want(t, "")
	if _, err := j.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find: %v, want that nothing is left behind", err)
	}
	mustRun(t, j, c.leaf("a", draft, ok), journal.Options{})
	mustRun(t, j, c.leaf("a", draft, ok), journal.Options{Resume: true})
	c.want(t, "a:1")
}

// testAcquired checks that a process that dies between Acquire and Begin does not leave a run behind, so the ID is still free.
func testAcquired(t *testing.T, j tested) {
	_, err := j.Acquire(t.Context(), "run")
	must(t, err)
	other := j.open()
	if info, err := other.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find: %+v, %v; want ErrNoRun", info, err)
	}
	if runs, err := other.Runs(context.Background(), journal.Query{}); err != nil || len(runs) > 0 {
		t.Errorf("Runs: %+v, %v; want none", runs, err)
	}
	must(t, j.Release("run"))
	_, err = stone.Run(t.Context(), stone.Func0("a", draft, func(context.Context) (string, error) { return "x", nil }), kept(config(), other, journal.Options{}))
	must(t, err)
}

// testStartsWithInput checks that the start of a run and its input are one commit, so that the run can continue if the process
// dies afterwards. A different input that is given later is recorded too.
func testStartsWithInput(t *testing.T, j tested) {
	input := words(t, "one", "two")
	info := journal.RunInfo{ID: "run", Started: moment, Input: digestOf(input)}
	check := func(j journal.Journal, want dag.DAG, steps int) {
		t.Helper()
		got, err := journal.Input(t.Context(), j, info)
		if err != nil || digestOf(got) != digestOf(want) {
			t.Errorf("Input: %d nodes, %v; want %d", got.Len(), err, want.Len())
		}
		found, err := j.Steps(t.Context(), "run")
		if err != nil || len(found) != steps || !found[0].Recorded || found[0].Started.IsZero() || found[0].PossiblyPaid() != 0 {
			t.Errorf("Steps: %+v, %v; want %d", found, err, steps)
		}
	}
	_, err := j.Acquire(t.Context(), "run")
	must(t, err)
	must(t, j.Begin(t.Context(), info, input))
	check(j.open(), input, 1)
	must(t, j.Begin(t.Context(), info, input))
	check(j.open(), input, 1)
	must(t, j.Release("run"))

	_, err = j.Acquire(t.Context(), "run")
	must(t, err)
	must(t, j.Begin(t.Context(), info, input)) // the same request again
	check(j, input, 1)
	do(t, j, key("a"), value("a"))
	other := words(t, "three")
	info.Input = digestOf(other)
	if _, err := journal.Input(t.Context(), j, journal.RunInfo{ID: "older", Input: info.Input}); !errors.Is(err, journal.ErrNoInput) {
		t.Errorf("Input of a run without it: %v, want ErrNoInput", err)
	}
	must(t, j.Begin(t.Context(), info, other))
	check(j.open(), other, 3)
	do(t, j, key("b"), value("b"))
	finish(t, j, "run", journal.Outcome{State: journal.Done})
	again := j.open()
	_, err = again.Acquire(t.Context(), "run")
	must(t, err)
	recorder{t, again}.replay(key("a"))
	recorder{t, again}.replay(key("b"))
	must(t, again.Release("run"))
	check(again, other, 4)
}

// testHeld checks that a context returned by Held ends permanently: a run that is acquired again has a new one.
func testHeld(t *testing.T, j tested) {
	if j.Held("run").Err() == nil {
		t.Error("a run that was never acquired is held")
	}
	hold := func() context.Context {
		_, err := j.Acquire(t.Context(), "run")
		must(t, err)
		held := j.Held("run")
		if held.Err() != nil {
			t.Fatalf("an acquired run is not held: %v", context.Cause(held))
		}
		return held
	}
	first := hold()
	must(t, j.Release("run"))
	if first.Err() == nil || j.Held("run").Err() == nil {
		t.Error("a run that was left is held")
	}
	second := hold()
	_, err := j.Acquire(t.Context(), "run/inner")
	must(t, err)
	if first.Err() == nil || second.Err() != nil || j.Held("run/inner").Err() != nil {
		t.Errorf("after the run was taken again, the contexts have the errors %v, %v and %v", first.Err(), second.Err(), j.Held("run/inner").Err())
	}
	inner := j.Held("run/inner")
	must(t, j.Release("run/inner"))
	if inner.Err() == nil || second.Err() != nil {
		t.Errorf("after the inner run was left, its context and the outer run's have the errors %v and %v", inner.Err(), second.Err())
	}
	_, err = j.Acquire(t.Context(), "run/inner")
	must(t, err)
	inner = j.Held("run/inner")
	must(t, j.Release("run"))
	if inner.Err() == nil || j.Held("run/inner").Err() == nil {
		t.Error("an inner run is held, though the outer one was left")
	}
	for _, left := range []context.Context{first, second, inner} {
		if why := context.Cause(left); !strings.Contains(why.Error(), "is not held by this journal") {
			t.Errorf("a run was left, and its context says: %v", why)
		}
	}
}
