package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
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
	reached = func(point string) {
		if point == "before commit" {
			commits.Add(1)
		}
	}
	t.Cleanup(func() { reached = func(string) {} })
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
			time.Sleep(100 * time.Millisecond)
			info, err := db.Find(t.Context(), id)
			switch {
			case begun && (err != nil || info.State != journal.Interrupted):
				t.Errorf("the run is %s, %v", info.State, err)
			case !begun && !errors.Is(err, journal.ErrNoRun):
				t.Errorf("the run that could not start is %s, %v", info.State, err)
			}
		})
	}
}
