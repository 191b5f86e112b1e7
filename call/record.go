package call

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// A Record says how a call went. It is kept in the meta of the node that the
// call made, or of its failure, under MetaKey, as JSON.
type Record struct {
	Intent   string   `json:"intent,omitempty"`
	Cap      string   `json:"cap/id,omitempty"` // who answered, or was asked last
	Version  string   `json:"cap/version,omitempty"`
	Attempts int      `json:"attempts"`       // invocations in all, repairs included
	Plan     bool     `json:"plan,omitempty"` // it answered with a plan
	Failure  string   `json:"failure/type,omitempty"`
	Error    string   `json:"error,omitempty"`
	Out      JSON     `json:"out,omitempty"` // what was refused; what was accepted is the content of the node
	Score    *float64 `json:"score,omitempty"`
	// MustFailed and ShouldFailed are the checks that did not hold in the attempt
	// that counts.
	MustFailed   []string    `json:"must-failed,omitempty"`
	ShouldFailed []string    `json:"should-failed,omitempty"`
	Rejected     []Rejection `json:"rejected,omitempty"`
	Tried        []Attempt   `json:"tried,omitempty"` // in the order in which they began
	Usage        Usage       `json:"usage,omitzero"`
}

// MetaKey is where a node's meta holds the Record of the call that made it.
const MetaKey = "call"

// A Rejection is a candidate that was not asked, and the first test that it failed.
type Rejection struct {
	Cap    string `json:"cap/id"`
	Reason string `json:"reason"` // as "requires/cap-kind-mismatch"
}

// An Attempt is one invocation.
type Attempt struct {
	Cap          string   `json:"cap/id"`
	Version      string   `json:"cap/version,omitempty"`
	Number       int      `json:"attempt"`          // of this capability, from 1
	Repair       bool     `json:"repair,omitempty"` // it mended what was refused before
	Cancelled    bool     `json:"cancelled,omitempty"`
	Score        *float64 `json:"score,omitempty"`
	Judge        *float64 `json:"judge,omitempty"`
	MustFailed   []string `json:"must-failed,omitempty"`
	ShouldFailed []string `json:"should-failed,omitempty"`
	Failure      string   `json:"failure/type,omitempty"`
	Error        string   `json:"error,omitempty"`
	Usage        Usage    `json:"usage,omitzero"`
}

// buffers are for records on their way to becoming strings.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// meta is the record as it stands beside a node.
func (r *Record) meta() map[string]string {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	text, err := canon.Append((*b)[:0], r)
	if err != nil { // only bytes that are no UTF-8 have no JSON: in a message
		text, _ = canon.Append((*b)[:0], &Record{Intent: r.Intent, Cap: r.Cap, Attempts: r.Attempts, Failure: r.Failure, Error: "no record: " + err.Error()})
	}
	*b = text
	return map[string]string{MetaKey: string(text)}
}

// RecordOf reads the record beside a node that a call made, or beside its failure.
// It is nil if there is none.
func RecordOf(n *dag.Node) *Record {
	text, ok := n.Meta()[MetaKey]
	if !ok {
		return nil
	}
	r := new(Record)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil
	}
	return r
}

// timeless is the record without what differs from run to run: as the content of
// a node, whose id must not.
func (r Record) timeless() Record {
	r.Usage.LatencyMS = 0
	r.Tried = slices.Clone(r.Tried)
	for i := range r.Tried {
		r.Tried[i].Usage.LatencyMS = 0
	}
	return r
}
