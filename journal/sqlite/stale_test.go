package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// A run that this process lost, and that somebody then removed, begins as a new one.
func TestBeginAfterRemoval(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	mine, theirs := open(t, file, Options{Lease: time.Hour}), open(t, file, Options{})
	do(t, mine, stepKey("r", 1)) // holds it without Acquire
	execute(t, file, "UPDATE runs SET owner = 'nobody', lease = 1, beat = beat + 1 WHERE id = 'r'")
	if _, err := mine.Do(t.Context(), stepKey("r", 2), nil); err == nil {
		t.Fatal("the run was not lost")
	}
	if err := theirs.Remove(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	ctx := record.WithBegin(t.Context())
	if _, err := mine.Acquire(ctx, "r"); err != nil {
		t.Fatal(err)
	}
	if err := mine.Begin(ctx, journal.RunInfo{ID: "r", Started: stopped()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	do(t, mine, stepKey("r", 1))
	if err := mine.End(t.Context(), "r", journal.Outcome{State: journal.Done}); err != nil {
		t.Fatal(err)
	}
}
