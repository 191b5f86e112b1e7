package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

func stepKey(run string, n byte) step.Key {
	return step.Key{RunID: run, Path: fmt.Sprint("p/", n), Kind: "step", Name: "p", Digest: dag.ID{n}}
}

// work returns work that counts its calls.
func work(calls *atomic.Int64) func(context.Context) (step.Record, error) {
	return func(context.Context) (step.Record, error) {
		calls.Add(1)
		return step.Record{Content: []byte(`1`)}, nil
	}
}

func do(t *testing.T, db *DB, key step.Key) step.Record {
	t.Helper()
	rec, err := db.Do(t.Context(), key, work(new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func wantHeld(t *testing.T, err error, by *DB) {
	t.Helper()
	var held *journal.HeldError
	info, finding := by.Find(t.Context(), "r")
	if !errors.As(err, &held) || finding != nil || held.Owner == "" || held.Owner != info.Owner || held.Run != "r" {
		t.Errorf("error %v, want a HeldError that names %q, %v", err, info.Owner, finding)
	}
}

func TestHeldRunIsRefused(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	one, two := open(t, file, Options{Lease: 2 * time.Second}), open(t, file, Options{})
	do(t, one, stepKey("r", 1))
	for range 2 {
		var calls atomic.Int64
		_, err := two.Do(t.Context(), stepKey("r", 2), work(&calls))
		if wantHeld(t, err, one); calls.Load() > 0 {
			t.Error("a run that is held was worked on")
		}
	}
	do(t, two, stepKey("other", 1)) // runs are leased one by one
	if err := one.Release("r"); err != nil {
		t.Fatal(err)
	}
	if !do(t, two, stepKey("r", 1)).Replayed {
		t.Error("after a release the run was not replayed")
	}
	_, err := one.Do(t.Context(), stepKey("r", 3), work(new(atomic.Int64)))
	wantHeld(t, err, two)
}

func TestCloseReleases(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	one := open(t, file, Options{Lease: time.Hour})
	do(t, one, stepKey("r", 1))
	held := one.Held("r")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(held), journal.ErrClosed) || one.Held("r").Err() == nil {
		t.Errorf("after Close the context of the run has ended with %v, want ErrClosed", context.Cause(held))
	}
	if left, err := filepath.Glob(file + "-*"); len(left) > 0 || err != nil {
		t.Errorf("Close left %v, %v", left, err)
	}
	if !do(t, open(t, file, Options{}), stepKey("r", 1)).Replayed {
		t.Error("after Close the run was not replayed")
	}
	if _, err := one.Do(t.Context(), stepKey("r", 2), work(new(atomic.Int64))); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Do after Close: %v, want ErrClosed", err)
	}
}

// A run that was taken, but whose facts cannot be read, is left again.
func TestFailedAcquireReleases(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	one := open(t, file, Options{Lease: time.Second})
	do(t, one, stepKey("r", 1))
	if err := errors.Join(one.Begin(t.Context(), journal.RunInfo{ID: "r", Started: time.Now()}, dag.DAG{}), one.Release("r")); err != nil {
		t.Fatal(err)
	}
	execute(t, file, "UPDATE runs SET info = replace(info, '{', '{ ') WHERE id = 'r'")
	two := open(t, file, Options{Lease: time.Second})
	for _, db := range []*DB{one, two, one} {
		if _, err := db.Acquire(t.Context(), "r"); !errors.As(err, new(*journal.DamageError)) {
			t.Errorf("Acquire: %v, want a DamageError each time", err)
		}
	}
}

// Of several processes that want a run whose owner died, one gets it.
func TestExpiredLeaseIsTakenOnce(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	gone := open(t, file, Options{})
	if _, err := gone.file.pool.Exec("INSERT INTO runs (id, owner, beat, lease) VALUES ('r', 'gone', 7, 100)"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var calls, won atomic.Int64
	start := time.Now()
	for range 6 {
		db := open(t, file, Options{})
		group.Go(func() {
			_, err := db.Do(t.Context(), stepKey("r", 1), work(&calls))
			var held *journal.HeldError
			switch {
			case err == nil:
				won.Add(1)
			case !errors.As(err, &held):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || calls.Load() != 1 {
		t.Errorf("%d took the run over and worked %d times, want one and once", won.Load(), calls.Load())
	}
	if waited := time.Since(start); waited < 100*time.Millisecond {
		t.Errorf("the run was taken over after %v, want the time of the lease, 100ms", waited)
	}
}

// An owner that was only slow notices. It writes nothing, but the result of its running
// step is kept for the new owner.
func TestSlowOwnerCannotWrite(t *testing.T) {
	// The writer of slow pauses after one of its beats, so outside any transaction.
	var armed atomic.Bool
	paused, resume := make(chan struct{}), make(chan struct{})
	reached.Call(func(point string) {
		if point == "after commit" && armed.CompareAndSwap(true, false) {
			close(paused)
			<-resume
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	file := filepath.Join(memdir.New(t), "stone.db")
	slow, next := open(t, file, Options{Lease: 50 * time.Millisecond}), open(t, file, Options{})
	do(t, slow, stepKey("r", 1))
	held := slow.Held("r")
	_, err := slow.Do(t.Context(), stepKey("r", 2), func(ctx context.Context) (step.Record, error) {
		armed.Store(true)
		<-paused
		defer close(resume)
		_, err := next.Do(ctx, stepKey("r", 3), work(new(atomic.Int64)))
		return step.Record{Content: []byte(`2`)}, err
	})
	wantHeld(t, err, next)
	wantHeld(t, context.Cause(held), next)
	_, err = slow.Do(t.Context(), stepKey("r", 4), work(new(atomic.Int64)))
	wantHeld(t, err, next)
	if rows := count(t, next, "p/2"); rows > 0 {
		t.Error("an owner that had lost the run recorded a result")
	}
	if rec := do(t, next, stepKey("r", 2)); !rec.Replayed || string(rec.Content) != "2" {
		t.Errorf("the step that was finished too late has the result %s, replayed: %v; want that of the former owner", rec.Content, rec.Replayed)
	}
	if do(t, next, stepKey("r", 4)).Replayed {
		t.Error("an owner that had lost the run did a step")
	}
}

func TestWaitForLeaseEndsWithContext(t *testing.T) {
	db := open(t, "", Options{})
	if _, err := db.file.pool.Exec("INSERT INTO runs (id, owner, beat, lease) VALUES ('r', 'gone', 7, 3600000)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := db.Do(ctx, stepKey("r", 1), work(new(atomic.Int64))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Two processes may write different runs into one file at the same time.
func TestSharedFile(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	var group sync.WaitGroup
	for i := range 3 {
		db := open(t, file, Options{})
		group.Go(func() {
			for n := range byte(50) {
				if _, err := db.Do(t.Context(), stepKey(fmt.Sprint(i), n+1), work(new(atomic.Int64))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// count returns the number of results of run r at a path.
func count(t *testing.T, db *DB, path string) (n int) {
	t.Helper()
	if err := db.file.pool.QueryRow("SELECT count(*) FROM records WHERE path = ?", path).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Removing a run between two signs of life does not look as if another owner had taken it.
func TestRemoveBetweenSigns(t *testing.T) {
	db := open(t, "", Options{Lease: 4 * time.Millisecond}) // a sign each millisecond
	for i := range 100 {
		run := fmt.Sprint("run", i)
		if _, err := db.Acquire(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if err := db.Begin(t.Context(), journal.RunInfo{ID: run, Pipeline: "p", Started: time.Now()}, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		if err := db.End(t.Context(), run, journal.Outcome{State: journal.Done}); err != nil {
			t.Fatal(err)
		}
		if err := db.Release(run); err != nil {
			t.Fatal(err)
		}
		if err := db.Remove(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Acquire(t.Context(), "none"); err != nil {
			t.Fatal(err)
		}
		if err := db.Release("none"); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that loses its run again and again while it lives takes it with a longer lease each time, up to
// a bound. Each tenure records a step, and one that ends without a loss starts from the first lease again.
func TestLeaseGrows(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db, err := Open(file, Options{Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, want := range []int{1, 2, 4, 8, 8, 8, 1} {
		if _, err := db.Acquire(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		do(t, db, stepKey("r", byte(2*i)))
		if got := leaseOf(t, file); got != time.Duration(want)*time.Minute {
			t.Errorf("tenure %d has a lease of %v, want %d minutes", i, got, want)
		}
		if i < 5 {
			execute(t, file, "UPDATE runs SET owner = 'another', lease = 0 WHERE id = 'r'") // taken over, and left
		}
		_, err := db.Do(t.Context(), stepKey("r", byte(2*i+1)), work(new(atomic.Int64)))
		if lost := errors.As(err, new(*journal.HeldError)); lost != (i < 5) {
			t.Fatalf("tenure %d: %v", i, err)
		}
		if err := db.Release("r"); err != nil && i >= 5 {
			t.Fatal(err)
		}
	}
	steps, err := db.Steps(t.Context(), "r")
	if err != nil || len(steps) < 7 {
		t.Errorf("%d steps, %v; want one of each tenure", len(steps), err)
	}
}

func leaseOf(t *testing.T, file string) time.Duration {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var ms int64
	if err := db.QueryRow("SELECT lease FROM runs WHERE id = 'r'").Scan(&ms); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}
