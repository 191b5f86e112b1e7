package log

import (
	"testing"
	"time"
)

// An owner is dead when it was silent for the time of its lease while somebody looked. A time
// in which the database did not answer does not count, since the owner could not write either.
func TestSilentWhileWatched(t *testing.T) {
	owner := lease{exists: true, owner: "o", beat: 7, time: 2000}
	later := owner
	later.beat++
	for name, c := range map[string]struct {
		since, last time.Duration // ago
		now         lease
		over        bool
	}{
		"watched for a lease":            {3 * time.Second, 500 * time.Millisecond, owner, true},
		"watched for less":               {time.Second, 500 * time.Millisecond, owner, false},
		"not watched for half a lease":   {3 * time.Second, 1500 * time.Millisecond, owner, false},
		"gave a sign of life":            {3 * time.Second, 500 * time.Millisecond, later, false},
		"a gap of a busy machine":        {3 * time.Second, 200 * time.Millisecond, owner, true},
		"sees an owner the first time":   {1 << 62, 1 << 62, later, false},
		"a sign of life after an outage": {9 * time.Second, 8 * time.Second, later, false},
	} {
		seen := sighting{owner, time.Now().Add(-c.since), time.Now().Add(-c.last)}
		if over := seen.again(c.now).over(); over != c.over {
			t.Errorf("%s: the owner is dead: %t, want %t", name, over, c.over)
		}
	}
	short := lease{exists: true, owner: "o", time: 1} // shorter than any gap
	if seen := (sighting{short, time.Now().Add(-time.Second), time.Now().Add(-100 * time.Millisecond)}).again(short); !seen.over() {
		t.Error("an owner with a short lease is never dead")
	}
}
