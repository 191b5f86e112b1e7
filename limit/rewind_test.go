package limit

import (
	"testing"
	"time"
)

// A clock that is set back by an hour makes a full rate wait a minute, not an hour.
func TestClockSetBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	q := question{Limits: Limits{RequestsPerMinute: 10, Concurrency: 10}, Owner: "a", Running: 10, Want: counts{10, 0}, Queued: 10}
	state, got := exchange(nil, q, now, time.Second)
	if got.Slice.Requests != 10 {
		t.Fatalf("the first process has %+v", got)
	}
	q.Owner, q.Running = "b", 0
	now = now.Add(-time.Hour)
	state, got = exchange(state, q, now, time.Second)
	if got.Slice.Requests != 0 || got.Retry > 2*time.Minute {
		t.Errorf("right after the clock was set back: %+v", got)
	}
	if _, got = exchange(state, q, now.Add(62*time.Second), time.Second); got.Slice.Requests == 0 || got.Slots == 0 {
		t.Errorf("a minute later: %+v", got)
	}
}
