package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
	"github.com/stonelayer/stone/kind"
)

var queued = struct{ first, second, third dag.Type[int] }{dag.NewType[int]("first"), dag.NewType[int]("second"), dag.NewType[int]("third")}

// three are leaves without effects but the middle one, which calls do.
func three(do func(context.Context) error) stone.Ashlar {
	return stone.Seq("three",
		stone.Func0("first", queued.first, func(context.Context) (int, error) { return 1, nil }, stone.Effects()),
		stone.Func("second", queued.first, queued.second, func(ctx context.Context, n int) (int, error) { return n + 1, do(ctx) }),
		stone.Func("third", queued.second, queued.third, func(_ context.Context, n int) (int, error) { return n + 1, nil }, stone.Effects()))
}

// Before work with effects everything is durable that was recorded before it, for another process too. Without such work a
// run is one commit: of its start, its steps and its end.
func TestQueued(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db := open(t, file, Options{Lease: time.Hour})
	other := open(t, file, Options{})
	var commits atomic.Int64
	reached.Call(func(point string) {
		if point == "before commit" {
			commits.Add(1)
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	p := three(func(ctx context.Context) error {
		steps, err := other.Steps(ctx, "r")
		if err != nil || len(steps) != 2 || !steps[0].Recorded || steps[1].Recorded || steps[1].Attempts != 1 {
			t.Errorf("before the effect another process sees %+v, %v", steps, err)
		}
		return nil
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	if info, err := other.Find(t.Context(), "r"); err != nil || info.State != journal.Done || info.Steps != 3 {
		t.Errorf("%+v, %v", info, err)
	}
	least := int64(1000)
	for n := range 20 {
		before := commits.Load()
		pure := stone.Func0("first", queued.first, func(context.Context) (int, error) { return 1, nil }, stone.Effects())
		if _, err := stone.Run(t.Context(), pure, stone.Config{RunID: fmt.Sprint("pure-", n), Recorder: journal.Keep(db, journal.Options{})}); err != nil {
			t.Fatal(err)
		}
		least = min(least, commits.Load()-before)
	}
	if least != 1 {
		t.Errorf("a run without effects takes %d commits, want 1", least)
	}
}

// A step that starts and ends within a commit starts before it ends, for all who read the run.
func TestQueuedOrder(t *testing.T) {
	db := open(t, "", Options{Lease: time.Hour})
	if _, err := stone.Run(t.Context(), three(func(context.Context) error { return nil }), stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range follow(t, db, "r", 0) {
		if row.Kind == "leaf" {
			got = append(got, fmt.Sprint(row.Name, " ", row.Ended))
		}
	}
	want := []string{"first false", "first true", "second false", "second true", "third false", "third true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// A watcher is told of a step when that is durable, and at the latest before Run returns.
func TestQueuedEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db := open(t, file, Options{Lease: time.Hour})
	other := open(t, file, Options{})
	var told []string
	watch := event.Func(slog.LevelDebug, func(e event.Event) {
		told = append(told, e.Path+" "+e.Type())
		if done, ok := e.Data.(event.StepDone); !ok || done.Form != "leaf" {
			return
		}
		if _, err := other.Record(t.Context(), e.Run, e.Path, "leaf"); err != nil {
			t.Errorf("told that %s is done: %v", e.Path, err)
		}
	})
	for n := range 10 {
		told = nil
		p := three(func(context.Context) error { return nil })
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: fmt.Sprint("r", n), Watch: watch, Recorder: journal.Keep(db, journal.Options{})}); err != nil {
			t.Fatal(err)
		}
		if len(told) != 10 || told[0] != "three run-start" || told[9] != "three run-end" {
			t.Fatalf("%d: %q", n, told)
		}
	}
}

// While nothing can be written, no step with an effect starts and nobody is told of a result. The run is interrupted. One that
// could not even start does not start later.
func TestQueuedFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprint("begun ", begun), func(t *testing.T) {
			db := open(t, file, Options{Lease: time.Hour, Retry: 50 * time.Millisecond, RetryResults: 100 * time.Millisecond})
			id := fmt.Sprint("r-", begun)
			var unlock func()
			hold := sync.OnceFunc(func() { unlock = lock(t, file) })
			if !begun {
				hold()
			}
			worked, done := 0, 0
			p := stone.Seq("all",
				stone.Func0("zeroth", dag.NewType[int]("zeroth"), func(context.Context) (int, error) { hold(); worked++; return 0, nil }),
				three(func(context.Context) error { worked++; return nil }))
			watch := event.Func(slog.LevelDebug, func(e event.Event) {
				if d, ok := e.Data.(event.StepDone); ok && d.OK || e.Type() == "run-end" && e.Data.(event.RunEnded).OK {
					done++
				}
			})
			_, err := stone.Run(t.Context(), p, stone.Config{RunID: id, Watch: watch, Recorder: journal.Keep(db, journal.Options{})})
			if !errors.Is(err, journal.ErrUnavailable) || !errors.Is(err, kind.Recorder) {
				t.Fatalf("the run ends with %v", err)
			}
			want := 0
			if begun {
				want = 1
			}
			if worked != want || done != 0 {
				t.Errorf("%d steps with effects ran, want %d; %d events of results", worked, want, done)
			}
			unlock()
			info, err := db.Find(t.Context(), id)
			for end := time.Now().Add(20 * time.Second); begun && info.State == journal.Running && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
				info, err = db.Find(t.Context(), id)
			}
			if !begun {
				time.Sleep(100 * time.Millisecond) // in which it must not start
				info, err = db.Find(t.Context(), id)
			}
			switch {
			case begun && (err != nil || info.State != journal.Interrupted):
				t.Errorf("the run is %s, %v", info.State, err)
			case !begun && !errors.Is(err, journal.ErrNoRun):
				t.Errorf("the run that could not start is %s, %v", info.State, err)
			}
		})
	}
}

// steals returns a step that another process takes the run from, and leaves it again, while it works the first time. The
// process learns of that when the result is queued.
func steals(t *testing.T, db *DB, file string) func(context.Context) error {
	var stolen atomic.Bool
	learn := sync.OnceFunc(func() { <-db.Held("r").Done() })
	reached.Call(func(point string) {
		if point == "after queue" && stolen.Load() {
			learn()
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	return func(context.Context) error {
		if !stolen.Swap(true) {
			execute(t, file, "UPDATE runs SET owner = 'other/1/x', lease = 0")
		} else {
			t.Error("the step ran again")
		}
		return nil
	}
}

// When the run is lost while a result is queued, no later step starts, nobody is told of the result and the run fails, although
// the lease is free again. The next holder finds the result. If it cannot be put aside, that is logged.
func TestQueuedLost(t *testing.T) {
	for _, row := range []struct {
		name          string
		last, refused bool
	}{{name: "before a step"}, {name: "before the end", last: true}, {name: "not put aside", refused: true}} {
		t.Run(row.name, func(t *testing.T) {
			lines := make(chan string, 10)
			before := slog.Default()
			t.Cleanup(func() { slog.SetDefault(before) })
			slog.SetDefault(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
			file := filepath.Join(t.TempDir(), "stone.db")
			db := open(t, file, Options{Lease: time.Hour})
			if row.refused {
				execute(t, file, fmt.Sprintf("CREATE TRIGGER no BEFORE INSERT ON records WHEN NEW.seq & %d >= %d BEGIN SELECT RAISE(ABORT, 'no'); END", 1<<32-1, log.Aside))
			}
			steal, effects := steals(t, db, file), 0
			steps := []stone.Ashlar{stone.Func0("stolen", queued.first, func(ctx context.Context) (int, error) { return 1, steal(ctx) })}
			if !row.last {
				steps = append(steps, stone.Func("next", queued.first, queued.second, func(_ context.Context, n int) (int, error) { effects++; return n, nil }))
			}
			p := stone.Seq("all", steps...)
			told := 0
			watch := event.Func(slog.LevelDebug, func(e event.Event) {
				if d, ok := e.Data.(event.StepDone); ok && d.OK || e.Type() == "run-end" && e.Data.(event.RunEnded).OK {
					told++
				}
			})
			_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Watch: watch, Recorder: db})
			if !errors.As(err, new(*journal.HeldError)) || effects > 0 || told > 0 {
				t.Errorf("the run ends with %v after %d more steps and %d events of results, want a HeldError after none", err, effects, told)
			}
			if wait := db.Settled("r"); wait == nil || !errors.As(wait(true), new(*journal.HeldError)) {
				t.Error("everything is settled, want a HeldError")
			}
			if row.refused {
				select {
				case line := <-lines:
					if !strings.Contains(line, "stolen") {
						t.Errorf("the log says %q", line)
					}
				case <-time.After(10 * time.Second):
					t.Error("the log does not say that the result is lost")
				}
				return
			}
			if err := db.Release("r"); err != nil {
				t.Fatal(err)
			}
			reached.Call(nil)
			if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: db}); err != nil {
				t.Errorf("resumed: %v", err)
			}
		})
	}
}
