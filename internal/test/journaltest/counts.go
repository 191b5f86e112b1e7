package journaltest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stonelayer/stone/journal"
)

// testCounts checks that counts and lists of runs agree.
func testCounts(t *testing.T, j tested) {
	states := []journal.State{journal.Waiting, journal.Failed, journal.Drained, journal.Canceled, journal.Done, journal.Running, journal.Interrupted}
	for n := range 28 {
		id := fmt.Sprintf("run-%02d", n)
		begin(t, j, journal.RunInfo{ID: id, Pipeline: fmt.Sprint("p", n%3), Labels: map[string]string{"team": fmt.Sprint(n % 2)}})
		state := states[n%len(states)]
		if n%4 == 0 || state == journal.Waiting && n%2 == 0 {
			_, err := j.Ask(t.Context(), journal.Question{Run: id, Path: "q", Name: "q", Text: "?", Asked: time.Now()})
			must(t, err)
		}
		switch state {
		case journal.Running:
		case journal.Interrupted:
			must(t, j.Release(id))
		default:
			must(t, j.End(t.Context(), id, journal.Outcome{State: state, Ended: moment}))
		}
	}
	for _, q := range []journal.Query{
		{}, {Asking: true}, {States: []journal.State{journal.Waiting, journal.Refused}, Asking: true}, {States: []journal.State{journal.Answered}},
		{States: []journal.State{journal.Drained, journal.Interrupted}}, {States: []journal.State{journal.Running, journal.Waiting}, Pipeline: "p1"},
		{Labels: map[string]string{"team": "1"}}, {States: []journal.State{journal.Done}, Labels: map[string]string{"team": "0"}}, {Pipeline: "none"},
	} {
		want, got := map[string]int{}, map[string]int{}
		listed := q
		listed.Limit = math.MaxInt16
		runs, err := j.open().Runs(t.Context(), listed)
		must(t, err)
		for _, r := range runs {
			want[fmt.Sprint(r.Pipeline, " ", r.State)]++
		}
		counts, err := j.open().Counts(t.Context(), q)
		must(t, err)
		for _, c := range counts {
			got[fmt.Sprint(c.Pipeline, " ", c.State)] += c.Runs
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: %v, want %v", q, got, want)
		}
	}
}
