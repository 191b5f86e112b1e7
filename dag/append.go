package dag

import (
	"errors"
	"fmt"
	"slices"
)

// grow adds a node whose parents are d.Next(). Such a node cannot be there
// already: its parents would have a child, and then not be the heads.
func (d DAG) grow(n *Node) DAG {
	e := n.spare.Swap(nil)
	if e == nil {
		e = new(entry)
	}
	e.prev, e.node, e.count = d.log, n, d.Len()+1
	d.log = e
	return d
}

// Append adds a node. Its parents must be in the DAG; they stop being heads, and the
// node becomes the last head. Appending a node that exists already changes nothing.
//
// A node whose parents are d.Next(), as those that a Type makes, costs the same
// however large the DAG is. For others the way back to the oldest parent is
// searched, and without parents the whole graph.
func (d DAG) Append(n *Node) (DAG, error) {
	if n == nil || n.typ == "" {
		return d, errors.New("append: want a node made by NewNode or by a Type, got none")
	}
	if slices.Equal(n.parents, d.next()) {
		return d.grow(n), nil
	}
	there, missing := d.lookFor(n)
	switch {
	case there:
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

// lookFor reports whether the node is there, and otherwise which of its parents
// is not.
func (d DAG) lookFor(n *Node) (there bool, missing *Node) {
	wanted := idSet(n.parents)
	for at := range d.backward() {
		if at.id == n.id {
			return true, nil
		}
		// A node stands behind all of its parents, so behind the first one
		// of them it cannot come any more.
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

// Extends reports whether d is base with or without further nodes, made by
// appending to it. Every DAG extends the empty one.
func (d DAG) Extends(base DAG) bool {
	at := d.log
	for at.len() > base.Len() {
		at = at.prev
	}
	return at == base.log
}

// add returns the log with a group after it.
func (e *entry) add(g group) *entry {
	return &entry{prev: e, group: &g, count: e.len() + len(g.nodes)}
}

// addHead adds a head from which reading goes on at the given node.
func (g *group) addHead(head, from *Node) {
	g.heads, g.from = append(g.heads, head), append(g.from, from)
}

// keepHeads adds the heads of the log before the group that are not gone.
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

// extend adds nodes to the log, parents first. From says where reading goes on
// from those of them that stand for another node, see Join.
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
