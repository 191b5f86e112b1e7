package dag

import (
	"errors"
	"strings"
	"time"
)

// FailureContent is the content of a failure node.
type FailureContent struct {
	Kind   string `json:"kind"`   // what went wrong, as a program branches on it: "timeout"
	Reason string `json:"reason"` // what went wrong, for a person
	// Lane is the index of the fan-out lane that was dropped with this failure.
	Lane *int `json:"lane,omitempty"`
}

// Failure is the type of failure nodes.
var Failure = NewType[FailureContent]("failure")

// NewFailure makes a failure node that stands where the next node of d would.
// Bytes of kind, reason and meta that are no UTF-8 are replaced. Meta and at are
// beside its id.
func NewFailure(d DAG, f FailureContent, meta map[string]string, at time.Time) *Node {
	f.Kind, f.Reason = valid(f.Kind), valid(f.Reason)
	n, err := Failure.node(d.next(), f, at)
	if err != nil {
		// Two valid strings and an integer always have a JSON.
		panic(err)
	}
	if len(meta) > 0 {
		n.meta = make(map[string]string, len(meta))
	}
	for k, v := range meta {
		n.meta[valid(k)] = valid(v)
	}
	return n
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// WithFailure returns a DAG of the same nodes in which a failure is in flight.
// The cause is what Cause returns.
func (d DAG) WithFailure(n *Node, cause error) DAG {
	d.fail = &flight{node: n, cause: cause}
	return d
}

// WithoutFailure returns the same nodes with nothing in flight.
func (d DAG) WithoutFailure() DAG {
	d.fail = nil
	return d
}

// Failed reports whether a failure is in flight.
func (d DAG) Failed() bool { return d.fail != nil }

// Cause returns the Go error of the failure in flight, nil if there is none.
func (d DAG) Cause() error {
	if d.fail == nil {
		return nil
	}
	return d.fail.cause
}

// RecordFailure appends the failure in flight as a node; nothing is in flight
// afterwards. A DAG without a failure is returned as it is.
func (d DAG) RecordFailure() (DAG, error) {
	if d.fail == nil {
		return d, nil
	}
	return d.WithoutFailure().Append(d.fail.node)
}

// A LostLane is a lane of a fan-out that failed and was dropped: of its nodes
// only the marker at its start and its failure are kept.
type LostLane struct {
	Index   int
	Marker  *Node
	Failure *Node
}

// Lost lists the lanes that were dropped, in append order. A step that calls it
// declares Every(Failure).
func Lost(d DAG) ([]LostLane, error) {
	nodes, err := d.All(Failure.Name())
	if err != nil {
		return nil, err
	}
	var lost []LostLane
	var broken []error
	for _, n := range nodes {
		f, err := Failure.Of(n)
		if err != nil {
			broken = append(broken, err)
		} else if f.Lane != nil {
			lost = append(lost, LostLane{Index: *f.Lane, Marker: n.Parent(), Failure: n})
		}
	}
	return lost, errors.Join(broken...)
}
