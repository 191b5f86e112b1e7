package dag

import (
	"fmt"
	"slices"
)

// grow adds a node whose parents are d.Next(). Such a node cannot be there
// already: its parents would have a child, and then not be the heads.
func (d DAG) grow(n *Node) DAG {
	d.log = &entry{prev: d.log, node: n, count: d.Len() + 1}
	return d
}

// Append adds a node. Its parents must be in the DAG; they are no heads any
// more, and the node becomes the last head. Appending a node that is there
// already changes nothing.
func (d DAG) Append(n *Node) (DAG, error) {
	if n == nil {
		return d, fmt.Errorf("append: want a node, got nil")
	}
	if d.log != nil && len(n.parents) > 0 && slices.Equal(n.parents, d.Next()) || d.log == nil && len(n.parents) == 0 {
		return d.grow(n), nil
	}
	missing := map[ID]bool{}
	for _, p := range n.parents {
		missing[p.id] = true
	}
	for at := range d.backward() {
		if at.id == n.id {
			return d, nil
		}
		// A node stands behind all of its parents, so behind the first one
		// met it cannot come any more.
		if delete(missing, at.id); len(missing) == 0 && len(n.parents) > 0 {
			break
		}
	}
	for id := range missing {
		return d, fmt.Errorf("append %s: its parent %.12s is not in the DAG: append parents first", n, id)
	}
	g := group{nodes: n.self[:], heads: n.self[:]}
	if d.log != nil {
		g.heads = append(without(d.log.heads(), n.parents), n)
		if base := d.log.base(); len(n.parents) == 0 || n.parents[0] != base {
			g.base = base
		}
	}
	d.log = d.log.add(g)
	return d, nil
}

// Extends reports whether d is base with or without further nodes, made by
// appending to it.
func (d DAG) Extends(base DAG) bool { return common(d.log, base.log) == base.log }

// without returns the nodes that are not among the others.
func without(nodes, others []*Node) []*Node {
	gone := make(map[ID]bool, len(others))
	for _, o := range others {
		gone[o.id] = true
	}
	var rest []*Node
	for _, n := range nodes {
		if !gone[n.id] {
			rest = append(rest, n)
		}
	}
	return rest
}

// Merge returns the union of the DAGs: the nodes of the first, then what the
// second adds, and so on, each in its own order. Its heads are the nodes
// without children. It is associative and idempotent, and linear in the nodes
// that the DAGs do not share. The first failure in flight stays in flight.
func Merge(ds ...DAG) DAG {
	var out DAG
	for _, d := range ds {
		if out.fail == nil {
			out.fail = d.fail
		}
		out.log = merge(out.log, d.log)
	}
	return out
}

// merge adds to a what only b has.
func merge(a, b *entry) *entry {
	if b == nil {
		return a
	}
	shared := common(a, b)
	switch shared {
	case a:
		return b
	case b:
		return a
	}
	known := map[ID]bool{}
	for _, e := range a.since(shared) {
		for _, n := range e.nodes() {
			known[n.id] = true
		}
	}
	var added []*Node
	for _, e := range slices.Backward(b.since(shared)) {
		for _, n := range e.nodes() {
			if !known[n.id] {
				added = append(added, n)
			}
		}
	}
	if len(added) == 0 {
		return a
	}
	g := group{nodes: added, heads: leaves(a.heads(), added)}
	if a.base() == b.base() {
		g.base = a.base()
	}
	return a.add(g)
}

// common returns the last entry that both logs have.
func common(a, b *entry) *entry {
	for a != b {
		switch {
		case a == nil || b == nil:
			return nil
		case a.count > b.count:
			a = a.prev
		case b.count > a.count:
			b = b.prev
		default:
			a, b = a.prev, b.prev
		}
	}
	return a
}

// leaves returns those of heads and added that no added node has as a parent.
func leaves(heads, added []*Node) []*Node {
	inner := map[ID]bool{}
	for _, n := range added {
		for _, p := range n.parents {
			inner[p.id] = true
		}
	}
	var out []*Node
	for _, nodes := range [][]*Node{heads, added} {
		for _, n := range nodes {
			if !inner[n.id] {
				out = append(out, n)
			}
		}
	}
	return out
}
