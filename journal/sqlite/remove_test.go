package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
)

// patient is a context that is canceled after so many looks at it.
type patient struct {
	context.Context
	looks atomic.Int32
}

func (p *patient) Err() error {
	if p.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A large run is removed in several transactions. One whose removal was interrupted says so, and is removed by the
// next one; other runs lose nothing.
func TestRemoveLargeRun(t *testing.T) {
	before := log.AtOnce
	log.AtOnce = 20
	t.Cleanup(func() { log.AtOnce = before })
	file := t.TempDir() + "/stone.db"
	db := open(t, file, Options{})
	other := do(t, db, stepKey("other", 1))
	alone := records(t, file)
	_, err := db.Acquire(t.Context(), "r")
	if err := errors.Join(err, db.Begin(t.Context(), journal.RunInfo{ID: "r", Pipeline: "p"}, dag.DAG{})); err != nil {
		t.Fatal(err)
	}
	lanes(t, db, 0, 420)
	all := records(t, file)
	if err := db.Release("r"); err != nil {
		t.Fatal(err)
	}
	ctx := &patient{Context: t.Context()}
	ctx.looks.Store(12)
	if err := db.Remove(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted removal: %v", err)
	}
	if left := records(t, file); left > all-19 || left < 100 {
		t.Errorf("%d of %d records are left", left, all)
	}
	info, err := db.Find(t.Context(), "r")
	if err != nil || info.State != journal.Failed || info.Failure == nil || info.Failure.Kind != "removed" {
		t.Errorf("the run is %+v, %v", info.Outcome, err)
	}
	_, err = db.Acquire(t.Context(), "r")
	began := db.Begin(t.Context(), journal.RunInfo{ID: "r", Pipeline: "p"}, dag.DAG{})
	if err := errors.Join(err, db.Release("r")); err != nil || began == nil || !strings.Contains(began.Error(), "remove it again") {
		t.Errorf("resumed: %v, %v", began, err)
	}
	if err := db.Remove(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Find(t.Context(), "r"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("after the removal: %v", err)
	}
	if left := records(t, file); left != alone {
		t.Errorf("%d records are left, want %d of the other run", left, alone)
	}
	if again := do(t, db, stepKey("other", 1)); again.Sum != other.Sum {
		t.Error("the other run has lost its result")
	}
}

// records counts the records of a file.
func records(t *testing.T, file string) (n int) {
	t.Helper()
	pool, err := sql.Open("sqlite", file)
	if err == nil {
		err = errors.Join(pool.QueryRow("SELECT count(*) FROM records").Scan(&n), pool.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
