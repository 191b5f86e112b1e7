// Package owed describes data that a journal keeps for a run in addition to its records, until the run is removed: the batches
// with the run's requests, the receivers of notices about the run, and the notices that are still to be sent.
package owed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
)

// A Store stores this data. Every journal in this module implements it. Its methods are safe for concurrent use.
type Store interface {
	// Batches returns the batches of a run in the order in which they were recorded.
	Batches(ctx context.Context, run string) ([]Batch, error)
	// PutBatch records a batch of a run that this journal has opened. It replaces any batch with the same number.
	PutBatch(ctx context.Context, run string, b Batch) error
	// Receivers returns the receivers of a run, sorted by name.
	Receivers(ctx context.Context, run string) ([]Receiver, error)
	// PutReceiver adds a receiver to a run. It replaces any receiver with the same name. If the run has already ended or is
	// waiting, PutReceiver also adds a notice that says so. The error is ErrFull, or the error for an unknown run.
	PutReceiver(ctx context.Context, run string, r Receiver) error
	// DropReceiver removes a receiver of a run together with its notices.
	DropReceiver(ctx context.Context, run, name string) error
	// Due returns at most most notices whose next attempt is due, starting with the notice that has been due longest. It omits
	// notices for the receivers in but. A notice that is due more than LongestPause in the future counts as due, because the
	// clock must have been set back.
	Due(ctx context.Context, at time.Time, but []string, most int) ([]Notice, error)
	// PutNotice replaces a notice if the stored notice still has the given number of tries, and reports whether it has replaced
	// it. If several servers try to replace it, only one succeeds.
	PutNotice(ctx context.Context, n Notice, tries int) (bool, error)
}

// ErrFull is the error if a run already has MostReceivers receivers.
var ErrFull = errors.New("the run has the maximum number of receivers: remove one")

const (
	// MostReceivers is the maximum number of receivers per run.
	MostReceivers = 8
	// LongestPause is the maximum pause between two attempts to send a notice.
	LongestPause = time.Hour
)

// A Batch describes a provider's batch that contains requests of a run.
type Batch struct {
	Number   int       `json:"n"` // number of the batch in the run, from 1
	Name     string    `json:"name"`
	Provider string    `json:"provider"`
	URL      string    `json:"url"` // URL that the requests would otherwise be sent to
	Noted    time.Time `json:"noted"`
	ID       string    `json:"id,omitempty"` // the provider's ID of the batch; empty if unknown
	State    State     `json:"state"`
	// Keys lists the keys of the requests whose answers the run still needs.
	Keys []string `json:"keys,omitempty"`
	// Lost lists the keys of the requests that have received no answer, and Why is a description of how the batch ended.
	Lost []string `json:"lost,omitempty"`
	Why  string   `json:"why,omitempty"`
	// Dropped means that this program has canceled the batch. Canceled means that someone else has canceled it. Refused means
	// that the provider accepted the batch but processed none of its requests.
	Dropped  bool `json:"dropped,omitempty"`
	Canceled bool `json:"canceled,omitempty"`
	Refused  bool `json:"refused,omitempty"`
	// Estimate is the maximum cost of the requests. It is zero once the answers have been read.
	Estimate budget.Amount `json:"estimate,omitzero"`
}

// A State is the state of a batch.
type State string

// The states of a batch.
const (
	Making State = "making" // the provider may have created the batch
	Made   State = "made"
	Ended  State = "ended" // its answers have been read, or it has none
)

// A Receiver receives the notices about one run.
type Receiver struct {
	Name  string `json:"name"`  // name of the receiver, unique within the run
	Bound string `json:"bound"` // receivers with the same Bound, such as the same address, share connections and backoff
	Data  []byte `json:"data"`  // data needed for sending, including secrets
}

// A Notice tells a receiver about an event of a run.
type Notice struct {
	Receiver string // name of a webhook, or Bound of one of the run's receivers
	Run      string
	Event    string // see Stopped and Asked
	Name     string // name of the receiver within the run; empty for a webhook
	At       time.Time
	Next     time.Time // time of the next attempt; zero if the notice need not be sent any more
	Tries    int
	Body     []byte // the text to send; empty before the first attempt
}

// Stopped returns the event for a run that has ended or is waiting, in the given state.
func Stopped(state string, at time.Time) string {
	return fmt.Sprintf("run.%s %d", state, at.UnixNano())
}

// Asked returns the event for a question. If the question is asked again with a new Problem, the event is a different one.
func Asked(path, problem string, at time.Time) string {
	return fmt.Sprintf("question.asked %d %q %q", at.UnixNano(), path, problem)
}

// Type returns the event type of the notice, such as "run.done".
func (n Notice) Type() string {
	kind, _, _ := strings.Cut(n.Event, " ")
	return kind
}
