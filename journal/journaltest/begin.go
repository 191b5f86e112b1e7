package journaltest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
)

// Resuming a run that does not exist, or was removed meanwhile, starts no run.
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

// A process that dies between Acquire and Begin leaves no run: the name is free.
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

// The context of Held ends for good: a run that is taken again has another one.
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
		t.Errorf("after the inner run was left, its context and that of the outer run have the errors %v and %v", inner.Err(), second.Err())
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
