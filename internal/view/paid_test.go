package view_test

import (
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// An attempt that began after a person's answer and was lost may have been paid; one that waited for the answer was not.
func TestPaidAfterAnAnswer(t *testing.T) {
	at := time.Now()
	for _, c := range []struct {
		what     string
		state    journal.State
		started  time.Time
		answered time.Time
		recorded bool
		want     int
	}{
		{"it waits", journal.Waiting, at, time.Time{}, false, 0},
		{"answered, not resumed", journal.Answered, at, at.Add(time.Second), false, 0},
		{"killed after the answer", journal.Interrupted, at.Add(2 * time.Second), at.Add(time.Second), false, 1},
		{"running after the answer", journal.Running, at.Add(2 * time.Second), at.Add(time.Second), false, 0},
		{"done", journal.Done, at.Add(2 * time.Second), at.Add(time.Second), true, 0},
	} {
		s := journal.Step{Attempts: 2, Started: c.started, Recorded: c.recorded}
		got := view.Paid(journal.RunInfo{Outcome: journal.Outcome{State: c.state}}, journal.Branch{Step: &s}, &journal.Question{Asked: at, Answered: c.answered})
		if got.Attempts != c.want {
			t.Errorf("%s: %d attempts, want %d", c.what, got.Attempts, c.want)
		}
	}
}
