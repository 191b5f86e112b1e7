package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A process that has lost a run and does not know it yet withdraws no answer.
func TestLostHolderWithdrawsNoAnswer(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	one, two := open(t, file, Options{Lease: time.Hour}), open(t, file, Options{})
	if _, err := one.Acquire(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	q := journal.Question{Run: "r", Path: "p", Name: "p", Text: "sure?", Asked: time.Now()}
	_, err := one.Ask(t.Context(), q)
	if err := errors.Join(err, two.Answer(t.Context(), "r", "p", ask.Answer{Response: "yes"})); err != nil {
		t.Fatal(err)
	}
	execute(t, file, "UPDATE runs SET owner = 'other/1/x'")
	q.Problem = "not good"
	if _, err := one.Ask(t.Context(), q); !errors.As(err, new(*journal.HeldError)) {
		t.Errorf("Ask of a process that has lost the run: %v, want a HeldError", err)
	}
	if kept, err := two.Questions(t.Context(), "r"); err != nil || len(kept) != 1 || kept[0].Response != "yes" {
		t.Errorf("afterwards: %+v, %v; want that the answer stands", kept, err)
	}
}

// A result of a run that was lost while its step worked is put aside. The run is not taken again:
// nobody would release it.
func TestLostRunIsNotTakenAgain(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	one, two := open(t, file, Options{Lease: 200 * time.Millisecond}), open(t, file, Options{})
	_, err := one.Do(t.Context(), stepKey("r", 1), func(context.Context) (step.Record, error) {
		execute(t, file, "UPDATE runs SET owner = 'other/1/x', lease = 0")
		<-one.Held("r").Done() // a sign of life was refused
		return step.Record{Content: []byte(`1`)}, nil
	})
	if !errors.As(err, new(*journal.HeldError)) {
		t.Errorf("the step of a run that was lost: %v, want a HeldError", err)
	}
	if one.Held("r").Err() == nil {
		t.Error("the run was taken again for a result")
	}
	var calls atomic.Int64
	if _, err := two.Do(t.Context(), stepKey("r", 1), work(&calls)); err != nil || calls.Load() > 0 {
		t.Errorf("another process worked on the step %d times, %v; want that it finds the result", calls.Load(), err)
	}
}

// A run is not said to be kept in a file that is gone.
func TestEndInRemovedFile(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db, err := Open(file, Options{Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Acquire(t.Context(), "r")
	if err := errors.Join(err, db.Begin(t.Context(), journal.RunInfo{ID: "r", Started: time.Now()}, dag.DAG{}), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	if err := db.End(t.Context(), "r", journal.Outcome{State: journal.Done}); !errors.Is(err, journal.ErrGone) {
		t.Errorf("End: %v, want ErrGone", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v, want nothing that End has not said", err)
	}
}

// Close returns the error of a lease that it could not give up.
func TestCloseTellsOfLeases(t *testing.T) {
	db, err := Open(filepath.Join(memdir.New(t), "stone.db"), Options{Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, stepKey("r", 1))
	if _, err := db.file.conn.ExecContext(t.Context(), `CREATE TEMP TRIGGER refuse BEFORE UPDATE OF lease ON runs BEGIN SELECT RAISE(ABORT, 'never'); END`); err != nil {
		t.Fatal(err)
	}
	wantError(t, db.Close(), "never")
}

// A result that waits for the database is announced once, while it is still waiting.
func TestLongTroubleIsLogged(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	lines := make(chan string, 100)
	slog.SetDefault(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Retry: 50 * time.Millisecond, RetryResults: time.Minute})
	do(t, db, stepKey("r", 1))
	_, err := db.Do(t.Context(), stepKey("r", 2), func(context.Context) (step.Record, error) {
		unlock := lock(t, db.file.name)
		go func() {
			line := <-lines
			if !strings.Contains(line, "level=WARN") || !strings.Contains(line, "is locked: end the program that holds it") || !strings.Contains(line, ": trying again") {
				t.Errorf("logged: %s", line)
			}
			unlock()
		}()
		return step.Record{Content: []byte(`1`)}, nil
	})
	if err != nil {
		t.Error(err)
	}
	if len(lines) > 0 {
		t.Errorf("logged again: %s", <-lines)
	}
}

type lineWriter chan<- string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}
