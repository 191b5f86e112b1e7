package dag

import (
	"fmt"
	"slices"
	"time"
)

// The types of the nodes that a run itself writes.
const (
	// LaneType marks the start of a lane. Its content is {"index":n}.
	LaneType = "stone/lane"
	// JoinType holds together the heads of up to 1,000 lanes.
	JoinType = "stone/join"
	// OriginType stands before a fan-out with which a run begins.
	OriginType = "stone/origin"
)

// laneContent is the content of a LaneType node.
type laneContent struct {
	Index int `json:"index"`
}

type empty struct{}

var (
	laneMarker = NewType[laneContent](LaneType)
	join       = NewType[empty](JoinType)
	origin     = NewType[empty](OriginType)
)

// joinWidth is how many lane heads the next node takes as parents; more are
// grouped under nodes of JoinType.
const joinWidth = 1000

// Origin returns d, with an origin node if it was empty, so that there is a
// node before whatever fans out from it.
func Origin(d DAG) (DAG, error) {
	if d.log != nil {
		return d, nil
	}
	return origin.Append(d, empty{})
}

// Lane returns d with the marker of the lane of the given index.
func Lane(d DAG, index int) (DAG, error) {
	return laneMarker.Append(d, laneContent{index})
}

// Join brings lanes together that all began at base, in their order. Reading
// nearest nodes goes on where it was at base; the nodes of the lanes are found
// by All. The next node has the node at base as its first parent and the heads
// of the lanes after it, in groups of 1,000 under join nodes. It is linear in
// the nodes of the lanes.
func Join(base DAG, lanes []DAG) (DAG, error) {
	if base.log == nil {
		return base, fmt.Errorf("join: want a base with at least one node: call Origin before the lanes start")
	}
	var added, heads []*Node
	for i, lane := range lanes {
		entries := lane.log.since(base.log)
		if !lane.Extends(base) {
			return base, fmt.Errorf("join: lane %d does not extend the DAG it began with: append to the DAG that was given", i)
		}
		for _, e := range slices.Backward(entries) {
			added = append(added, e.nodes()...)
		}
		if len(entries) > 0 {
			heads = append(heads, ahead(lane.log.heads(), base.log.heads())...)
		}
	}
	if len(added) == 0 {
		return base, nil
	}
	here := base.here()
	for len(heads) > joinWidth {
		var joins []*Node
		for group := range slices.Chunk(heads, joinWidth) {
			n, err := join.node(append([]*Node{here}, group...), empty{}, time.Time{})
			if err != nil {
				return base, err
			}
			joins = append(joins, n)
		}
		added = append(added, joins...)
		heads = joins
	}
	base.log = base.log.add(group{nodes: added, heads: heads, base: here})
	return base, nil
}

// ahead returns the heads that are not among those of the base.
func ahead(heads, base []*Node) []*Node {
	if len(heads) == 1 {
		return heads
	}
	return without(heads, base)
}
