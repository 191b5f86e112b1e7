package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

func note(key, data string) journal.Item { return journal.Item{Key: key, Data: []byte(data)} }

// holding acquires and starts the run.
func holding(t *testing.T, j journal.Journal, run string) {
	t.Helper()
	if _, err := j.Acquire(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(t.Context(), journal.RunInfo{ID: run, Pipeline: "p", Started: time.Now()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
}

// The first item with a key wins, whoever posts it, and the board belongs to no one's record.
func testBoard(t *testing.T, j tested) {
	ctx, other := t.Context(), j.open()
	if _, err := other.Post(ctx, "run", note("a", "1")); !errors.Is(err, journal.ErrNoBoard) {
		t.Fatalf("a board that no holder made: %v", err)
	}
	holding(t, j, "run")
	if got, err := j.Post(ctx, "run", note("order/a", "1"), note("order/b", "2")); err != nil || len(got) != 2 || string(got[1].Data) != "2" {
		t.Fatalf("got %v, %v", got, err)
	}
	var wait sync.WaitGroup
	won := make([]string, 8)
	for i := range won {
		wait.Go(func() {
			from := []journal.Journal{j, other}[i%2]
			got, err := from.Post(ctx, "run", note("result/a", fmt.Sprint(i)), note("order/a", "another"))
			if err != nil {
				t.Error(err)
				return
			}
			if won[i] = string(got[0].Data); string(got[1].Data) != "1" {
				t.Errorf("a later item replaced the first: %q", got[1].Data)
			}
		})
	}
	wait.Wait()
	for _, w := range won {
		if w != won[0] {
			t.Errorf("several items won: %q", won)
		}
	}
	if got, err := other.Posted(ctx, "run", "order/b", "order/c", "order/a"); err != nil || len(got) != 2 || string(got["order/b"].Data) != "2" || got["order/a"].Seq != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := j.Post(ctx, "run", note("result/b/2", "2"), note("result/b/1", "1"), note("result/bc", "3"), note("resulu", "4")); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]string{
		"result/b": "result/b/2 result/b/1 result/bc", "result/b/": "result/b/2 result/b/1", "result/b/1": "result/b/1",
		"result/": "result/a result/b/2 result/b/1 result/bc", "result/bcd": "", "r": "result/a result/b/2 result/b/1 result/bc resulu",
	} {
		got, err := other.PostedUnder(ctx, "run", prefix)
		var keys []string
		for _, i := range got {
			keys = append(keys, i.Key)
		}
		if strings.Join(keys, " ") != want || err != nil {
			t.Errorf("under %q there are %q, %v; want %q", prefix, keys, err, want)
		}
	}
	if got, err := other.PostedUnder(ctx, "another", "result/"); len(got) > 0 || err != nil {
		t.Errorf("a run without a board has items %v, %v", got, err)
	}
	runs, err := j.Runs(ctx, journal.Query{})
	if err != nil || len(runs) != 1 {
		t.Errorf("the journal lists %v, %v", runs, err)
	}
	if found, err := j.Find(ctx, "ru"); err != nil || found.ID != "run" {
		t.Errorf("found %q, %v", found.ID, err)
	}
	if steps, err := j.Steps(ctx, "run"); err != nil || len(steps) != 0 {
		t.Errorf("the run has steps %v, %v", steps, err)
	}
}

// Watch yields every item once, in order, whoever posts it.
func testWatch(t *testing.T, j tested) {
	holding(t, j, "run")
	other := j.open()
	const each = 40
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if _, err := j.Post(ctx, "run", note("order/0", "")); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for w, from := range []journal.Journal{j, other} {
		wait.Go(func() {
			for i := range each {
				if _, err := from.Post(ctx, "run", note(fmt.Sprintf("result/%d-%d", w, i), "x"), note(fmt.Sprintf("step/%d-%d", w, i), "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen, last := map[string]bool{}, int64(0)
	enough := errors.New("enough")
	for got, err := range j.Watch(ctx, "run", "result/", 0) {
		if err != nil {
			if !errors.Is(err, enough) {
				t.Fatal(err)
			}
			break
		}
		if seen[got.Key] || got.Seq <= last {
			t.Fatalf("item %q at %d came again, or after %d", got.Key, got.Seq, last)
		}
		if seen[got.Key], last = true, got.Seq; len(seen) == 2*each {
			cancel(enough)
		}
	}
	wait.Wait()
	for got := range j.Watch(t.Context(), "run", "result/", last-1) {
		if got.Seq != last {
			t.Errorf("after %d it yields %d", last-1, got.Seq)
		}
		break
	}
}

// A board ends with its run, but not while its results are needed to resume.
func testBoardEnds(t *testing.T, j tested) {
	ctx := t.Context()
	for state, kept := range map[journal.State]bool{
		journal.Done: false, journal.Failed: false, journal.Waiting: true, journal.Drained: true, journal.Canceled: true,
	} {
		run := string(state)
		holding(t, j, run)
		if _, err := j.Post(ctx, run, note("a", "1")); err != nil {
			t.Fatal(err)
		}
		if err := j.End(ctx, run, journal.Outcome{State: state}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Post(ctx, run, note("late", "1")); (err == nil) != kept || err != nil && !errors.Is(err, journal.ErrNoBoard) {
			t.Errorf("%s, and not left yet: got %v", state, err)
		}
		if err := j.Release(run); err != nil {
			t.Fatal(err)
		}
		if _, err := j.open().Post(ctx, run, note("b", "1")); (err == nil) != kept {
			t.Errorf("%s: got %v", state, err)
		}
		if err := j.Remove(ctx, run); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Posted(ctx, run, "a"); err != nil || len(got) > 0 {
			t.Errorf("%s: the board outlives its run: %v, %v", state, got, err)
		}
	}
}
