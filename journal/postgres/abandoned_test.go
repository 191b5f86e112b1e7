package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
)

// begin takes and starts a run.
func begin(t *testing.T, db *DB, id string) {
	t.Helper()
	if _, err := db.Acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := db.Begin(t.Context(), journal.RunInfo{ID: id, Pipeline: "p", Started: time.Unix(1, 0)}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
}

func leave(t *testing.T, db *DB, id string, state journal.State) {
	t.Helper()
	if state != journal.Running {
		if err := db.End(t.Context(), id, journal.Outcome{State: state}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Release(id); err != nil {
		t.Fatal(err)
	}
}

// Abandoned yields the runs that nobody has and that can continue, and no others.
func TestAbandoned(t *testing.T) {
	need.Time(t)
	address := pgtest.Database(t)
	owner := open(t, address, Options{Lease: time.Minute})
	watching := open(t, address, Options{Lease: 800 * time.Millisecond})
	for id, state := range map[string]journal.State{
		"left": journal.Running, "drained": journal.Drained, "done": journal.Done, "canceled": journal.Canceled, "failed": journal.Failed, "waiting": journal.Waiting,
	} {
		begin(t, owner, id)
		leave(t, owner, id, state)
	}
	begin(t, owner, "held")
	begin(t, watching, "own")
	// These have an owner that gives no sign of life, but not yet for long enough.
	begin(t, owner, "dead")
	begin(t, owner, "dead/1")
	do(t, owner, stepKey("dead/1", 1)) // it is in the database then
	pgtest.Exec(t, address, "UPDATE stone.runs SET owner = 'gone', lease = 4000 WHERE id = 'dead'")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	started := time.Now()
	var first []string
	for info, err := range watching.Abandoned(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		want := journal.Interrupted
		if info.ID == "drained" {
			want = journal.Drained
		}
		if info.State != want || info.Pipeline != "p" || info.Owner != "" {
			t.Errorf("run %s: %+v, want it %s", info.ID, info, want)
		}
		if info.ID != "dead" {
			if !slices.Contains(first, info.ID) {
				first = append(first, info.ID)
			}
			continue
		}
		if waited := time.Since(started); waited < 4*time.Second {
			t.Errorf("the owner was given up after %v, want its lease, 4s", waited)
		}
		// The context ends before its lease would once more.
		ctx, cancel := context.WithTimeout(ctx, 3900*time.Millisecond)
		defer cancel()
		if _, err := watching.Acquire(ctx, "dead"); err != nil {
			t.Errorf("Acquire of an abandoned run: %v", err)
		}
		break
	}
	if slices.Sort(first); !slices.Equal(first, []string{"drained", "left"}) {
		t.Errorf("without an owner are %v, want those that were left and drained", first)
	}
}
