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

// A pause that the server demands does not grow by the hour by which the clock is set back.
func TestClockSetBackInPause(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	q := question{Limits: Limits{RequestsPerMinute: 10}, Owner: "a", Pause: 30 * time.Second, Reason: "refused"}
	state, _ := exchange(nil, q, now, time.Second)
	q = question{Limits: q.Limits, Owner: "b", Want: counts{1, 0}, Queued: 1}
	now = now.Add(10*time.Second - time.Hour)
	state, got := exchange(state, q, now, time.Second)
	if got.Pause <= 0 || got.Pause > 30*time.Second {
		t.Errorf("right after the clock was set back: %+v", got)
	}
	if _, got = exchange(state, q, now.Add(31*time.Second), time.Second); got.Pause != 0 || got.Slice.Requests != 1 {
		t.Errorf("after the pause: %+v", got)
	}
}
