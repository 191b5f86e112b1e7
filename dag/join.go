package dag

import (
	"errors"
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

// Lanes returns the DAGs with which the lanes of a fan-out over items start: d with
// one item each. An item that is equal to an earlier one has a lane marker before
// it, or else the two lanes would be one. The error names the item that JSON
// cannot hold.
func (t Type[T]) Lanes(d DAG, items []T) ([]DAG, error) {
	lanes := make([]DAG, len(items))
	var known nodeSet
	for i, v := range items {
		lane, err := t.Append(d, v)
		if err == nil && known.add(lane.log.node) >= 0 {
			if lane, err = Lane(d, i); err == nil {
				lane, err = t.Append(lane, v)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		lanes[i] = lane
	}
	return lanes, nil
}

// Join brings lanes together that all began at base, in their order. Reading
// nearest nodes goes on where it was at base; the nodes of the lanes are found
// by All. The next node has the node at base as its first parent and the heads
// of the lanes after it, in groups of 1,000 under join nodes. It is linear in
// the nodes of the lanes. Failures in flight in a lane are not carried over.
//
// It is an error if a lane does not extend base or has a node that another one
// has too: start each with [Lane], or with an item of its own.
func Join(base DAG, lanes []DAG) (DAG, error) {
	if base.log == nil {
		return base, errors.New("join: want a base with at least one node: call Origin before the lanes start")
	}
	total := 0
	for i, lane := range lanes {
		if !lane.Extends(base) {
			return base, fmt.Errorf("join: lane %d does not extend the DAG it began with: append to the DAG that was given", i)
		}
		total += lane.Len() - base.Len()
	}
	if total == 0 {
		return base, nil
	}
	nodes := make([]*Node, 0, total)
	var known nodeSet
	var laneOf []int // the lane of each node in known
	for i, lane := range lanes {
		start := len(nodes)
		for _, e := range slices.Backward(lane.log.since(base.log)) {
			nodes = append(nodes, e.nodes()...)
		}
		for k, n := range nodes[start:] {
			// A node that follows another is in two lanes only if that one is.
			if k > 0 && n.Parent() == nodes[start+k-1] {
				continue
			}
			if place := known.add(n); place >= 0 {
				return base, fmt.Errorf("join: lanes %d and %d both have node %s: start each lane with Lane or an item of its own", laneOf[place], i, n)
			}
			laneOf = append(laneOf, i)
		}
	}
	return base.join(nodes, lanes)
}

// join adds the nodes of the lanes, and join nodes as they are needed.
func (d DAG) join(nodes []*Node, lanes []DAG) (DAG, error) {
	gone, heads := headsOf(lanes, d.log)
	here := d.here()
	joins, heads, err := gather(heads, here, joinWidth)
	if err != nil {
		return d, err
	}
	g := group{nodes: append(nodes, joins...)}
	g.keepHeads(d.log, gone)
	for _, h := range heads {
		g.addHead(h, here)
	}
	d.log = d.log.add(g)
	return d, nil
}

// headsOf returns the heads of the base that have children in some lane, and
// the heads that the lanes added.
func headsOf(lanes []DAG, base *entry) (gone map[ID]bool, added []*Node) {
	gone = map[ID]bool{}
	keptBy := map[ID]int{}
	for _, h := range base.heads() {
		keptBy[h.id] = 0
	}
	for _, lane := range lanes {
		heads := lane.log.heads()
		// Heads are in append order: those of the base come first.
		for len(heads) > 0 {
			kept, old := keptBy[heads[0].id]
			if !old {
				break
			}
			keptBy[heads[0].id] = kept + 1
			heads = heads[1:]
		}
		added = append(added, heads...)
	}
	for id, kept := range keptBy {
		gone[id] = kept < len(lanes)
	}
	return gone, added
}

// gather puts heads in groups of the given width under join nodes, and those
// again, until there are no more than that. It returns the join nodes that it
// made and the heads that are left.
func gather(heads []*Node, here *Node, width int) (joins, left []*Node, err error) {
	for len(heads) > width {
		start := len(joins)
		for group := range slices.Chunk(heads, width) {
			n, err := join.node(append([]*Node{here}, group...), empty{}, time.Time{})
			if err != nil {
				return nil, nil, err
			}
			joins = append(joins, n)
		}
		heads = joins[start:]
	}
	return joins, heads, nil
}
