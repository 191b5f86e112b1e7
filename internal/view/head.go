package view

import (
	"time"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// States are the states of a run, in the order in which people are offered them.
var States = []journal.State{
	journal.Running, journal.Waiting, journal.Answered, journal.Done, journal.Failed,
	journal.Canceled, journal.Drained, journal.Interrupted, journal.Refused, journal.Damaged,
}

// Over reports whether a run in this state changes only if a person resumes it.
func Over(s journal.State) bool {
	return s == journal.Done || s == journal.Failed || s == journal.Canceled
}

// Resumable reports whether a person can resume a run in the state.
func Resumable(s journal.State) bool {
	switch s {
	case journal.Failed, journal.Canceled, journal.Drained, journal.Interrupted, journal.Answered:
		return true
	}
	return false
}

// A Head is a run as lists show it.
type Head struct{ journal.RunInfo }

// Why returns the reason why the run has no result. It is nil for a run that is waiting or was answered: its questions say more.
func (h Head) Why() *journal.Failure {
	if h.State == journal.Waiting || h.State == journal.Answered {
		return nil
	}
	return h.Failure
}

// Results returns the number of steps with a result. It is 0 if the steps were not counted since the run started, because the
// journal's number is then from an earlier end.
func (h Head) Results() int {
	if h.Ended.IsZero() {
		return 0
	}
	return h.Steps
}

// Holder names the process that executes the run, or is "" if none does.
func (h Head) Holder() string { return text.Process(h.Owner) }

// Until returns when the run ended, or now if it is running. It is zero if the end is unknown because its process died.
func (h Head) Until(now time.Time) time.Time {
	if h.State == journal.Running {
		return now
	}
	return h.Ended
}
