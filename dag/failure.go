package dag

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
)

// FailureContent is the content of a failure node.
type FailureContent struct {
	Kind   kind.Kind `json:"kind"`   // what went wrong, for programs, for example "timeout"
	Reason string    `json:"reason"` // what went wrong, for a person
	// Lane is the index of the lane that a fan-out dropped because of this failure; nil if no lane was dropped.
	Lane *int `json:"lane,omitempty"`
}

// Failure is the type of failure nodes.
var Failure = NewType[FailureContent]("failure")

// NewFailure returns a new failure node with the parents d.Next(). Invalid UTF-8 in kind, reason and meta is replaced. Meta and
// at are not part of its id.
func NewFailure(d DAG, f FailureContent, meta map[string]string, at time.Time) *Node {
	f.Kind, f.Reason = kind.Kind(valid(string(f.Kind))), valid(f.Reason)
	n, err := Failure.node(d.next(), f, at)
	if err != nil {
		// Valid strings and an integer can always be encoded.
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

// WithFailure returns a DAG with the nodes of d and the given failure in flight. The Cause of the result is cause.
func (d DAG) WithFailure(n *Node, cause error) DAG {
	d.fail = &flight{node: n, cause: cause}
	return d
}

// WithoutFailure returns a DAG with the nodes of d and no failure in flight.
func (d DAG) WithoutFailure() DAG {
	d.fail = nil
	return d
}

// InFlight reports whether d has a failure in flight.
func (d DAG) InFlight() bool { return d.fail != nil }

// Failed reports whether a failure is in flight, or was recorded as the latest node: it is true for a failed run's DAG, even after
// [Read]. The failure of a lost lane does not count.
func (d DAG) Failed() bool {
	if d.InFlight() {
		return true
	}
	last := d.Within(nil).Latest()
	if last == nil || last.typ != Failure.Name() {
		return false
	}
	failure, err := Failure.Of(last)
	return err != nil || failure.Lane == nil
}

// Cause returns the Go error of the failure in flight, or nil if no failure is in flight or its error is unknown.
func (d DAG) Cause() error {
	if d.fail == nil {
		return nil
	}
	return d.fail.cause
}

// RecordFailure returns d with the failure in flight appended as a node. The result has no failure in flight, but its Failed is
// still true. If d has no failure in flight, RecordFailure returns d.
func (d DAG) RecordFailure() (DAG, error) {
	if d.fail == nil {
		return d, nil
	}
	return d.WithoutFailure().Append(d.fail.node)
}

// A LostLane is a lane of a fan-out that failed and was dropped. Only the marker at its
// start and its failure are kept.
type LostLane struct {
	Index   int
	Marker  *Node
	Failure *Node
	FanOut  string // the address of the fan-out, "" if unknown
	Lanes   int    // the fan-out's number of lanes, or 0 if unknown
}

// Lost returns the dropped lanes of all fan-outs in d, in append order. A step that calls it must declare All(Failure). If a
// failure node cannot be read, Lost returns an error together with the other lanes.
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
			lanes, _ := strconv.Atoi(n.meta[terms.Lanes]) // 0 if the number is not recorded
			lost = append(lost, LostLane{*f.Lane, n.Parent(), n, n.meta[terms.FanOut], lanes})
		}
	}
	return lost, errors.Join(broken...)
}

// Losses counts lost lanes and total lanes, counting only fan-outs that lost at least one lane.
type Losses struct {
	Lost  int `json:"lost"`
	Lanes int `json:"of"`
}

// CountLost returns the number of lanes in lost and the total number of lanes in their fan-outs.
func CountLost(lost []LostLane) Losses {
	c := Losses{Lost: len(lost)}
	lanes := map[string]int{}
	for _, l := range lost {
		lanes[l.FanOut] = max(lanes[l.FanOut], l.Lanes)
	}
	for _, n := range lanes {
		c.Lanes += n
	}
	c.Lanes = max(c.Lanes, c.Lost)
	return c
}

// String returns text such as "10 of 12 lanes lost", or "" if no lane was lost.
func (l Losses) String() string {
	if l.Lost == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d lanes lost", l.Lost, l.Lanes)
}
