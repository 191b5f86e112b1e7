package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// countCommits counts the transactions after the call.
func countCommits(t *testing.T) *atomic.Int64 {
	t.Helper()
	var n atomic.Int64
	reached.Call(func(point string) {
		if point == "after commit" {
			n.Add(1)
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	return &n
}

// A row that cannot be written fails alone; the other rows of its commit are written.
func TestBadRowFailsAlone(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Lease: time.Minute})
	for _, run := range []string{"r", "bad"} {
		do(t, db, stepKey(run, 1))
	}
	_, err := db.file.conn.ExecContext(t.Context(), `CREATE TEMP TRIGGER refuse BEFORE INSERT ON records WHEN new.path = 'p/66' BEGIN SELECT RAISE(ABORT, 'never'); END`)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for n := range byte(40) {
		group.Go(func() {
			if _, err := db.Do(context.Background(), stepKey("r", n+2), work(new(atomic.Int64))); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			key := stepKey("bad", 66)
			key.Digest[1] = n
			if _, err := db.Do(context.Background(), key, work(new(atomic.Int64))); err == nil || !strings.Contains(err.Error(), "never") {
				t.Errorf("a row that cannot be written: %v", err)
			}
		})
	}
	group.Wait()
	key := stepKey("r", 100)
	key.Name = "\xff"
	var calls atomic.Int64
	_, err = db.Do(t.Context(), key, work(&calls))
	if wantError(t, err, "is not UTF-8"); calls.Load() > 0 {
		t.Error("a step whose name cannot be written was worked on")
	}
	do(t, db, stepKey("r", 101))
}

// Removing or replacing a file ends its runs.
func TestFileIsGone(t *testing.T) {
	for _, c := range []struct {
		want string
		do   func(file string) error
	}{
		{"was removed while it was open", os.Remove},
		{"was removed while it was open", func(file string) error { return os.Rename(file, file+".old") }},
		{"was replaced while it was open", func(file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, nil, 0o600))
		}},
	} {
		db, err := Open(filepath.Join(memdir.New(t), "stone.db"), Options{Lease: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		do(t, db, stepKey("r", 1))
		if err := c.do(db.file.path); err != nil {
			t.Fatal(err)
		}
		err = nil
		for n := byte(2); err == nil; n++ {
			key := stepKey("r", n)
			_, err = db.Do(t.Context(), key, func(context.Context) (step.Record, error) {
				time.Sleep(time.Millisecond)
				return step.Record{Content: []byte("1")}, nil
			})
		}
		wantError(t, err, db.file.name, c.want)
		_ = db.Close() // it returns the same error
	}
}

// A damaged run hides no other and can be removed.
func TestDamage(t *testing.T) {
	journaltest.TestDamage(t, func() (func() journal.Journal, func(string)) {
		file := filepath.Join(memdir.New(t), "stone.db")
		return func() journal.Journal { return open(t, file, Options{Lease: time.Second}) }, func(statement string) { execute(t, file, statement) }
	}, map[string]string{
		"digest":         "UPDATE records SET digest = zeroblob(32) WHERE path LIKE '%a' AND seq >> 32 = (SELECT run FROM runs WHERE id = 'run')",
		"content":        "UPDATE records SET content = x'32' WHERE digest IS NOT NULL AND seq >> 32 = (SELECT run FROM runs WHERE id = 'run')",
		"lost":           "DELETE FROM records WHERE seq >> 32 = (SELECT run FROM runs WHERE id = 'run')",
		"question":       "UPDATE questions SET question = replace(question, 'yes', 'not'), open = 1 WHERE run = (SELECT run FROM runs WHERE id = 'run')",
		"facts: info":    "UPDATE runs SET info = replace(info, 'name', 'nome') WHERE id = 'run'",
		"facts: text":    "UPDATE runs SET info = '{' WHERE id = 'run'",
		"facts: outcome": "UPDATE runs SET outcome = replace(outcome, '7', '8') WHERE id = 'run'",
		"facts: tail":    "UPDATE runs SET tail = 1, tip = 20 WHERE id = 'run'",
		"facts: seal":    "UPDATE runs SET seal = x'00' WHERE id = 'run'",
	}, func(name string) bool { return strings.HasPrefix(name, "facts") })
}

// A changed or missing record is detected before any new work starts.
func TestDamageStopsWork(t *testing.T) {
	for name, c := range map[string]struct{ statement, want string }{
		"digest":   {"UPDATE records SET digest = zeroblob(32) WHERE path = 'p/7'", "was changed after it was written"},
		"path":     {"UPDATE records SET path = 'p/99' WHERE path = 'p/7'", "was changed after it was written"},
		"intent":   {"UPDATE records SET content = zeroblob(32) WHERE digest IS NULL", "was changed after it was written"},
		"lost":     {"DELETE FROM records WHERE path = 'p/7'", "is not complete"},
		"info":     {"UPDATE runs SET info = replace(info, 'name', 'nome')", "was changed after it was written"},
		"outcome":  {"UPDATE runs SET outcome = replace(outcome, '7', '8')", "was changed after it was written"},
		"tail":     {"UPDATE runs SET tail = 1, tip = 20", "was changed after it was written"},
		"question": {"UPDATE questions SET question = replace(question, 'yes', 'not')", "was changed after it was written"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(memdir.New(t), "stone.db")
			db, err := Open(file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Acquire(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			info := journal.RunInfo{ID: "r", Pipeline: "name", Started: stopped()}
			if err := db.Begin(t.Context(), info, dag.DAG{}); err != nil {
				t.Fatal(err)
			}
			for n := range byte(10) {
				do(t, db, stepKey("r", n+1))
			}
			q := journal.Question{Run: "r", Path: "ask", Name: "ask", Asked: stopped()}
			_, err = db.Ask(t.Context(), q)
			if err := errors.Join(err, db.Answer(t.Context(), "r", "ask", ask.Answer{Response: "yes"}), db.End(t.Context(), "r", journal.Outcome{State: journal.Canceled, Steps: 7}), db.Close()); err != nil {
				t.Fatal(err)
			}
			execute(t, file, c.statement)
			db = open(t, file, Options{})
			var calls atomic.Int64
			if _, err = db.Acquire(t.Context(), "r"); err == nil {
				_, err = db.Ask(t.Context(), q)
			}
			if err == nil {
				_, err = db.Do(t.Context(), stepKey("r", 50), work(&calls))
			}
			wantError(t, err, file, `run "r"`, c.want)
			if calls.Load() > 0 {
				t.Error("work was done on a record that is damaged")
			}
		})
	}
}

// A damaged record of another run is not reused, and does no harm.
func TestDamagedRecordIsNotReused(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
	key := stepKey("old", 1)
	key.Reuse = dag.ID{7}
	do(t, db, key)
	execute(t, db.file.name, "UPDATE records SET content = CAST('2' AS BLOB) WHERE path = 'p/1'")
	key.RunID = "new"
	if rec := do(t, db, key); rec.Replayed {
		t.Errorf("a damaged record was reused: %s", rec.Content)
	}
}

// shortRun starts, does a step and ends.
func shortRun(ctx context.Context, db *DB, id string) error {
	if _, err := db.Acquire(ctx, id); err != nil {
		return err
	}
	if err := db.Begin(ctx, journal.RunInfo{ID: id, Started: stopped()}, dag.DAG{}); err != nil {
		return err
	}
	_, err := db.Do(ctx, stepKey(id, 1), work(new(atomic.Int64)))
	return errors.Join(err, db.End(ctx, id, journal.Outcome{State: journal.Done}), db.Release(id))
}

// Runs share commits: their starts and ends are in one queue with their steps.
func TestShortRunsShareCommits(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Lease: time.Minute})
	commits := countCommits(t)
	const lanes, each = 16, 8
	var group sync.WaitGroup
	for lane := range lanes {
		group.Go(func() {
			for i := range each {
				if err := shortRun(context.Background(), db, fmt.Sprintf("r-%d-%d", lane, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := commits.Load(); n > lanes*each*6/4 {
		t.Errorf("%d runs made %d commits, want fewer than %d", lanes*each, n, lanes*each*6/4)
	}
}

// An inner run waits for the disk only with its steps, and is durable when the outer run
// has ended.
func TestInnerRunsAreCheap(t *testing.T) {
	need.Time(t)
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{Lease: 20 * time.Second})
	if _, err := db.Acquire(t.Context(), "exp"); err != nil {
		t.Fatal(err)
	}
	if err := db.Begin(t.Context(), journal.RunInfo{ID: "exp", Started: stopped()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	var disk sync.RWMutex // locked while the disk answers nothing
	reached.Call(func(point string) {
		if point == "before commit" {
			disk.RLock()
			defer disk.RUnlock()
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const n = 30
	for i := range n {
		id := fmt.Sprint("exp/", i)
		disk.Lock()
		_, err := db.Acquire(ctx, id)
		if err == nil {
			err = db.Begin(ctx, journal.RunInfo{ID: id, Started: stopped()}, dag.DAG{})
		}
		disk.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		do(t, db, stepKey(id, 1))
		disk.Lock()
		err = errors.Join(db.End(ctx, id, journal.Outcome{State: journal.Done}), db.Release(id))
		disk.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	other := open(t, file, Options{})
	if _, err := db.Acquire(t.Context(), "exp/open"); err != nil {
		t.Fatal(err)
	}
	do(t, db, stepKey("exp/open", 1))
	_, err := other.Acquire(t.Context(), "exp/open")
	if held := new(journal.HeldError); !errors.As(err, &held) {
		t.Errorf("Acquire of a run under the lease of another: %v, want that it is held", err)
	}
	if err := errors.Join(db.Release("exp/open"), db.End(t.Context(), "exp", journal.Outcome{State: journal.Done}), db.Release("exp")); err != nil {
		t.Fatal(err)
	}
	runs, err := other.Runs(t.Context(), journal.Query{Limit: 2 * n, States: []journal.State{journal.Done}})
	if err != nil || len(runs) != n+1 {
		t.Errorf("%d runs are done, %v; want %d", len(runs), err, n+1)
	}
	if _, err := other.Acquire(t.Context(), "exp/7"); err != nil {
		t.Errorf("Acquire after the outer run was left: %v", err)
	}
	if !do(t, other, stepKey("exp/7", 1)).Replayed {
		t.Error("the step of an inner run is not replayed")
	}
}

// Readers share a few connections.
func TestConnectionsAreBounded(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
	do(t, db, stepKey("r", 1))
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			if _, err := db.Steps(context.Background(), "r"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := db.file.pool.Stats().MaxOpenConnections; n != readers || db.file.pool.Stats().OpenConnections > readers {
		t.Errorf("%d of %d connections are open, want at most %d", db.file.pool.Stats().OpenConnections, n, readers)
	}
}
