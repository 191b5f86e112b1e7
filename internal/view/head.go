package view

import (
	"time"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// States are the states of a run, in the order in which they are offered to people.
var States = []journal.State{
	journal.Running, journal.Waiting, journal.Answered, journal.Done, journal.Failed,
	journal.Canceled, journal.Drained, journal.Interrupted, journal.Refused, journal.Damaged,
}

// Over reports whether a run in the given state changes only if a person resumes it.
func Over(s journal.State) bool {
	return s == journal.Done || s == journal.Failed || s == journal.Canceled
}

// Resumable reports whether a person can resume a run in the given state.
func Resumable(s journal.State) bool {
	switch s {
	case journal.Failed, journal.Canceled, journal.Drained, journal.Interrupted, journal.Answered:
		return true
	}
	return false
}

// A Head is a run as it is shown in lists.
type Head struct{ journal.RunInfo }

// Why returns the reason why the run has no result. It returns nil for a run that is waiting or was answered, because its
// questions say more.
func (h Head) Why() *journal.Failure {
	if h.State == journal.Waiting || h.State == journal.Answered {
		return nil
	}
	return h.Failure
}

// Results returns the number of steps with a result. It returns 0 if the steps have not been counted since the run was last
// started, because the number in the journal is then out of date.
func (h Head) Results() int {
	if h.Ended.IsZero() {
		return 0
	}
	return h.Steps
}

// Holder returns the name of the process that is executing the run, or "" if there is none.
func (h Head) Holder() string { return text.Process(h.Owner) }

// Until returns the time when the run ended, or now if it is still running. It returns the zero time if the end is unknown because
// the run's process died.
func (h Head) Until(now time.Time) time.Time {
	if h.State == journal.Running {
		return now
	}
	return h.Ended
}
