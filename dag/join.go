package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reserved reports whether a type name is reserved for nodes that only runs, calls and plans write. Nodes of reserved types are
// rejected as external input, because they could forge part of the record.
func Reserved(typ string) bool { return strings.HasPrefix(typ, "stone/") }

// laneContent is the content of a lane marker.
type laneContent struct {
	Index int `json:"index"`
}

type empty struct{}

// The types of the nodes that a run itself writes.
var (
	laneMarker = NewType[laneContent]("stone/lane") // at the start of a lane
	join       = NewType[empty]("stone/join")       // over the heads of up to joinWidth lanes; alone for a fan-out without lanes
	origin     = NewType[empty]("stone/origin")     // before a fan-out at the start of a run
)

// joinWidth is the maximum number of lane heads among the parents of a node; more are grouped under nodes of type stone/join.
const joinWidth = 1000

// Origin returns d, or an origin node if d is empty, so that a fan-out always follows a node.
func Origin(d DAG) (DAG, error) {
	if d.log != nil {
		return d, nil
	}
	return origin.Append(d, empty{})
}

// Lane returns d with a marker node added. The marker starts the lane with the given index.
func Lane(d DAG, index int) (DAG, error) {
	return laneMarker.Append(d, laneContent{index})
}

// Lanes returns the DAG with which each lane of a fan-out over items starts: d with the node of one item added. An item that
// equals an earlier one follows a lane marker, because otherwise the two lanes would be the same. The error names the first item
// that cannot be encoded.
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

// Join returns base with the nodes of the lanes, which must all start at base, added in order. Nearest continues at base, whereas
// All finds the nodes of the lanes. The first parent of the next node is the node at base. The heads of the lanes follow; more
// than 1,000 heads are grouped in thousands under join nodes. The cost is linear in the nodes of the lanes. Failures in flight in
// a lane are dropped.
//
// Without lanes, Join adds a join node, so that a read of the lanes finds none.
//
// Join returns an error if base is empty, if a lane does not extend base, or if two lanes share a node. To keep lanes apart,
// start each with [Lane] or with its own item.
func Join(base DAG, lanes []DAG) (DAG, error) {
	if base.log == nil {
		return base, errors.New("join: want a base with at least one node: call Origin before the lanes start")
	}
	if len(lanes) == 0 {
		return join.Append(base, empty{})
	}
	total := 0
	for i, lane := range lanes {
		if !lane.Extends(base) {
			return base, fmt.Errorf("join: lane %d does not extend its base: append to the DAG that was given", i)
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
			// A node is in two lanes only if its parent is in both too.
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

// join adds the nodes of the lanes, and join nodes if needed.
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

// headsOf returns two lists: the heads of base that have children in a lane, and the heads that the lanes have added.
func headsOf(lanes []DAG, base *entry) (gone map[ID]bool, added []*Node) {
	gone = map[ID]bool{}
	keptBy := map[ID]int{}
	for _, h := range base.heads() {
		keptBy[h.id] = 0
	}
	for _, lane := range lanes {
		heads := lane.log.heads()
		// Heads are in append order: the heads of the base come first.
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

// gather groups heads under join nodes, width at a time, and groups these nodes again until at most width heads are left. It
// returns the new join nodes and the heads that are left.
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
