package dag

import (
	"errors"
	"fmt"
	"slices"
)

// grow returns d with a node added whose parents are d.Next(). Such a node cannot be in d yet, because heads have no children.
func (d DAG) grow(n *Node) DAG {
	e := n.spare.Swap(nil)
	if e == nil {
		e = new(entry)
	}
	e.prev, e.node, e.count = d.log, n, d.Len()+1
	d.log = e
	return d
}

// Append returns d with the node n added. The parents of n must be in d; in the result, they are no longer heads, and n is the
// last head. Appending a node that d already has changes nothing.
//
// If the node's parents are d.Next(), as they are for nodes that a Type makes, the cost does not depend on the size of the DAG.
// Otherwise Append searches back to the oldest parent, or through the whole graph if the node has no parents.
func (d DAG) Append(n *Node) (DAG, error) {
	if n == nil || n.typ == "" {
		return d, errors.New("append: want a node made by NewNode or by a Type, got nil or a zero Node")
	}
	if slices.Equal(n.parents, d.next()) {
		return d.grow(n), nil
	}
	found, missing := d.lookFor(n)
	switch {
	case found:
		return d, nil
	case missing != nil:
		return d, fmt.Errorf("append %s: its parent %s is not in the DAG: append parents first", n, missing)
	}
	g := group{nodes: n.self[:]}
	g.keepHeads(d.log, idSet(n.parents))
	g.addHead(n, n)
	d.log = d.log.add(g)
	return d, nil
}

// lookFor reports whether d has the node n. If it does not, missing is a parent of n that d lacks, or nil if d has all of them.
func (d DAG) lookFor(n *Node) (found bool, missing *Node) {
	wanted := idSet(n.parents)
	for at := range d.backward() {
		if at.id == n.id {
			return true, nil
		}
		// A node comes after all of its parents, so the search ends at its oldest parent.
		if delete(wanted, at.id); len(wanted) == 0 && len(n.parents) > 0 {
			return false, nil
		}
	}
	for _, p := range n.parents {
		if wanted[p.id] {
			return false, p
		}
	}
	return false, nil
}

// Extends reports whether d is base or was made by adding nodes to base. Every DAG extends the empty DAG.
func (d DAG) Extends(base DAG) bool {
	at := d.log
	for at.len() > base.Len() {
		at = at.prev
	}
	return at == base.log
}

// add returns the log with the group g added as its last entry.
func (e *entry) add(g group) *entry {
	return &entry{prev: e, group: &g, count: e.len() + len(g.nodes)}
}

// addHead adds a head. A read that starts at the head continues at from.
func (g *group) addHead(head, from *Node) {
	g.heads, g.from = append(g.heads, head), append(g.from, from)
}

// keepHeads adds those heads of the earlier log that are not in gone.
func (g *group) keepHeads(log *entry, gone map[ID]bool) {
	if log == nil {
		return
	}
	from := log.from()
	for i, h := range log.heads() {
		if !gone[h.id] {
			g.addHead(h, from[i])
		}
	}
}

// extend adds nodes to the log, parents first. From maps a head to the node where a read continues if that is not the head
// itself; see Join.
func (e *entry) extend(nodes []*Node, from map[ID]*Node) *entry {
	if len(nodes) == 0 {
		return e
	}
	inner := map[ID]bool{}
	for _, n := range nodes {
		for _, p := range n.parents {
			inner[p.id] = true
		}
	}
	g := group{nodes: nodes}
	g.keepHeads(e, inner)
	for _, n := range nodes {
		switch other := from[n.id]; {
		case inner[n.id]:
		case other != nil:
			g.addHead(n, other)
		default:
			g.addHead(n, n)
		}
	}
	return e.add(g)
}

func idSet(nodes []*Node) map[ID]bool {
	set := make(map[ID]bool, len(nodes))
	for _, n := range nodes {
		set[n.id] = true
	}
	return set
}
