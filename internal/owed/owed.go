// Package owed describes data that a journal keeps for a run besides its records, until the run is removed: the batches in which
// its requests wait, its receivers of notices, and the notices still to be sent.
package owed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
)

// A Store is implemented by every journal of this module. Its methods may be called by several goroutines.
type Store interface {
	// Batches returns the batches of a run in the order in which they were noted.
	Batches(ctx context.Context, run string) ([]Batch, error)
	// PutBatch notes a batch of a run that this journal holds, or replaces the one with its number.
	PutBatch(ctx context.Context, run string, b Batch) error
	// Receivers returns the receivers of a run, by name.
	Receivers(ctx context.Context, run string) ([]Receiver, error)
	// PutReceiver adds a receiver of a run, or replaces the one with its name. If the run has ended or is waiting, the receiver
	// is owed a notice about that at once. It returns ErrFull, or the error of an unknown run.
	PutReceiver(ctx context.Context, run string, r Receiver) error
	// DropReceiver removes a receiver of a run with its notices.
	DropReceiver(ctx context.Context, run, name string) error
	// Due returns up to most notices whose next attempt is due, longest waiting first, except for the receivers in but. A notice
	// due later than LongestPause counts as due: the clock was set back.
	Due(ctx context.Context, at time.Time, but []string, most int) ([]Notice, error)
	// PutNotice replaces a notice if it still has the given number of tries, and reports whether it had: of several servers, only
	// one succeeds.
	PutNotice(ctx context.Context, n Notice, tries int) (bool, error)
}

// ErrFull means that a run has MostReceivers.
var ErrFull = errors.New("the run has as many receivers as it may have: remove one")

const (
	// MostReceivers is the maximum number of receivers of a run.
	MostReceivers = 8
	// LongestPause is the longest pause between two attempts at a notice.
	LongestPause = time.Hour
)

// A Batch contains requests of a run at a provider.
type Batch struct {
	Number   int       `json:"n"` // from 1
	Name     string    `json:"name"`
	Provider string    `json:"provider"`
	URL      string    `json:"url"` // where its requests would be sent
	Noted    time.Time `json:"noted"`
	ID       string    `json:"id,omitempty"` // at the provider; empty if that is not known
	State    State     `json:"state"`
	// Keys are the keys of the requests that the run still needs.
	Keys []string `json:"keys,omitempty"`
	// Lost are the requests without an answer, and Why is how the batch ended.
	Lost []string `json:"lost,omitempty"`
	Why  string   `json:"why,omitempty"`
	// Dropped means that this program canceled the batch, Canceled that somebody else did, and Refused that the provider accepted
	// the batch but processed none of its requests.
	Dropped  bool `json:"dropped,omitempty"`
	Canceled bool `json:"canceled,omitempty"`
	Refused  bool `json:"refused,omitempty"`
	// Estimate is the highest cost of its requests, until their answers are read.
	Estimate budget.Amount `json:"estimate,omitzero"`
}

// A State of a batch.
type State string

// The states of a batch.
const (
	Making State = "making" // it may have been created
	Made   State = "made"
	Ended  State = "ended" // its answers were read, or it has none
)

// A Receiver gets the notices about one run.
type Receiver struct {
	Name  string `json:"name"`  // at its run
	Bound string `json:"bound"` // receivers with the same Bound, such as one address, share connections and backoff
	Data  []byte `json:"data"`  // data for sending, including secrets
}

// A Notice is owed to a receiver, about one event of a run.
type Notice struct {
	Receiver string // the name of a webhook, or the Bound of a receiver of the run
	Run      string
	Event    string // see Stopped and Asked
	Name     string // of the receiver at the run; empty for a webhook
	At       time.Time
	Next     time.Time // zero if nothing is owed any more
	Tries    int
	Body     []byte // from the first attempt on
}

// Stopped is the event of a run that has ended in a state or is waiting.
func Stopped(state string, at time.Time) string {
	return fmt.Sprintf("run.%s %d", state, at.UnixNano())
}

// Asked is a question's event; a new problem with the answer makes it a new event.
func Asked(path, problem string, at time.Time) string {
	return fmt.Sprintf("question.asked %d %q %q", at.UnixNano(), path, problem)
}

// Type is the event type of the notice, such as "run.done".
func (n Notice) Type() string {
	kind, _, _ := strings.Cut(n.Event, " ")
	return kind
}
