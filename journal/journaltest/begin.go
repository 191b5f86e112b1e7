package journaltest

import (
	"context"
	"errors"
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
