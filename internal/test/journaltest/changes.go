package journaltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
)

// testChanges checks that Changes wakes readers in this and in other processes after each change to a run: its start, a question,
// an answer, its end and its removal.
func testChanges(t *testing.T, j tested) {
	readers := []journal.Journal{j, j.open()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed := make([]chan struct{}, len(readers))
	for i, r := range readers {
		changed[i] = make(chan struct{})
		go func() {
			defer close(changed[i])
			for range r.Changes(ctx) {
				select {
				case changed[i] <- struct{}{}:
				case <-ctx.Done():
				}
			}
		}()
	}
	// see waits until every reader sees the given list of runs and open questions.
	see := func(want string) {
		t.Helper()
		for i, r := range readers {
			for got := ""; got != want; {
				if _, ok := <-changed[i]; !ok {
					t.Fatalf("reader %d sees %s, want %s", i, got, want)
				}
				runs, err := r.Runs(ctx, journal.Query{})
				must(t, err)
				open, err := openQuestions(ctx, r)
				must(t, err)
				got = fmt.Sprint(len(runs), len(open))
				for _, info := range runs {
					got += " " + string(info.State)
				}
			}
		}
	}
	see("0 0")
	begin(t, j, journal.RunInfo{ID: "run"})
	see("1 0 running")
	_, err := j.Ask(ctx, journal.Question{Run: "run", Path: "p/a", Name: "a", Asked: moment})
	must(t, err)
	see("1 1 running")
	must(t, j.Answer(ctx, "run", "p/a", ask.Answer{Response: "yes"}))
	see("1 0 running")
	finish(t, j, "run", journal.Outcome{State: journal.Done})
	see("1 0 done")
	must(t, j.Remove(ctx, "run"))
	see("0 0")
	cancel()
	for i := range changed {
		for range changed[i] {
		}
	}
}
