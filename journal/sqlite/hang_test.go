package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// busy keeps n goroutines busy until the test ends.
func busy(t *testing.T, n int) {
	var stop atomic.Bool
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	t.Cleanup(func() {
		stop.Store(true)
		group.Wait()
	})
}

// A run that was left with an unwritten result can be acquired at any moment, even while
// that result is being written.
func TestAcquireWithUnwrittenRows(t *testing.T) {
	need.Time(t)
	for _, load := range []int{0, 16} {
		t.Run(fmt.Sprint(load, " busy goroutines"), func(t *testing.T) {
			busy(t, load)
			retry := 50 * time.Millisecond * time.Duration(1+load/2) // shorter ones end on a busy machine before the disk has answered
			big := []byte(`"` + strings.Repeat("x", 50_000) + `"`)
			var group sync.WaitGroup
			for range 10 {
				db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Retry: retry, RetryResults: retry, Lease: time.Minute})
				do(t, db, stepKey("first", 1))
				group.Go(func() {
					for i := range 60 / (1 + load/4) {
						if err := acquireUnwritten(t, db, fmt.Sprint("r", i), big); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}

func acquireUnwritten(t *testing.T, db *DB, run string, content []byte) error {
	for {
		if _, err := db.Acquire(t.Context(), run); err == nil {
			break
		} else if !slow(err) {
			return err
		}
	}
	var undo func()
	for undo == nil {
		_, err := db.Do(t.Context(), stepKey(run, 1), func(context.Context) (step.Record, error) {
			undo = full(t, db)
			return step.Record{Content: content}, nil
		})
		if err == nil || undo == nil && !slow(err) {
			return fmt.Errorf("a step on a full disk: %v, want an error after its work", err)
		}
	}
	if err := db.Release(run); err != nil && !slow(err) {
		return err
	}
	undo()
	for {
		if _, err := db.Acquire(t.Context(), run); err == nil {
			break
		} else if !strings.Contains(err.Error(), "no space left") && !slow(err) { // it is being retried
			return err
		}
	}
	rec, err := db.Do(t.Context(), stepKey(run, 1), work(new(atomic.Int64)))
	for err != nil {
		rec, err = db.Do(t.Context(), stepKey(run, 1), work(new(atomic.Int64)))
	}
	if !rec.Replayed {
		return fmt.Errorf("%s: the result that was kept is not replayed", run)
	}
	if err := db.Release(run); err != nil && !slow(err) {
		return err
	}
	return nil
}

// slow reports the error of a machine that is too busy for the Retry of a test.
func slow(err error) bool { return strings.Contains(err.Error(), "no answer for") }

// Running steps end when another process takes the run over, and after that one leaves it
// again: with a result, or with the error that the run is lost.
func TestTakenOverAgainAndAgain(t *testing.T) {
	need.Time(t)
	for _, load := range []int{0, 16} {
		t.Run(fmt.Sprint(load, " busy goroutines"), func(t *testing.T) {
			busy(t, load)
			db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Lease: 10 * time.Millisecond})
			times := 40
			if load > 0 {
				times = 10
			}
			for i := range times {
				takeOver(t, db, fmt.Sprint("r", i))
			}
		})
	}
}

// takeOver takes a run that db works on, and leaves it again, a few times.
func takeOver(t *testing.T, db *DB, run string) {
	t.Helper()
	var done atomic.Int64
	var stop atomic.Bool
	var group sync.WaitGroup
	for lane := range byte(8) {
		group.Go(func() {
			for i := byte(0); !stop.Load(); i++ {
				key := stepKey(run, 0)
				key.Digest[1], key.Digest[2] = lane+1, i%64
				if _, err := db.Do(t.Context(), key, work(new(atomic.Int64))); err != nil && !errors.As(err, new(*journal.HeldError)) {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	for range 4 {
		for before := done.Load(); done.Load() < before+16; {
			time.Sleep(100 * time.Microsecond)
		}
		// Through the connection of the writer, or SQLite would let it wait for long.
		_, err := db.file.conn.ExecContext(t.Context(), "UPDATE runs SET owner = 'another', lease = 0, beat = beat + 1 WHERE id = ?", run)
		if err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	group.Wait()
	// The others may have stopped before one of them took the run back.
	if err := db.Release(run); err != nil && !errors.As(err, new(*journal.HeldError)) {
		t.Error(err)
	}
}
