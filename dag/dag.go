package dag

import (
	"iter"
	"slices"
	"sync/atomic"
)

// A DAG is an append-only graph of nodes. The zero value is empty. A DAG is a value: methods that add nodes return a new DAG and
// do not change the receiver.
type DAG struct {
	log  *entry  // the last entry; nil if the DAG is empty
	fail *flight // the failure in flight
	view View    // limits reads; nil means no limit

	closing *entry // the end of the fan-out that the enclosing Reduce closes; nil outside a Reduce
}

// An entry is one step of the log: a group, or most often one node that follows all
// earlier heads. Entries are linked backwards, so that copies of a DAG share their
// common entries.
type entry struct {
	prev  *entry
	node  *Node
	group *group // if not nil, used in place of node
	count int    // the number of nodes in this entry and all earlier entries

	byType atomic.Pointer[trie[*list]]
}

// group holds the nodes that an entry adds and the heads after the entry.
type group struct {
	nodes []*Node // in append order
	heads []*Node // all nodes without children, in append order
	from  []*Node // for each head, the node where reading continues; see Join
}

func (e *entry) nodes() []*Node {
	if e.group != nil {
		return e.group.nodes
	}
	return e.node.self[:]
}

func (e *entry) heads() []*Node {
	if e.group != nil {
		return e.group.heads
	}
	return e.node.self[:]
}

func (e *entry) from() []*Node {
	if e.group != nil {
		return e.group.from
	}
	return e.node.self[:]
}

func (e *entry) len() int {
	if e == nil {
		return 0
	}
	return e.count
}

type flight struct {
	node  *Node
	cause error
}

// Len returns the number of nodes.
func (d DAG) Len() int { return d.log.len() }

// Heads returns the nodes that have no children, in append order.
func (d DAG) Heads() []*Node {
	if d.log == nil {
		return nil
	}
	return slices.Clone(d.log.heads())
}

// Latest returns the failure node in flight if there is one, and otherwise the last head. It returns nil if the DAG is empty.
// Every step may see a failure in flight; a step sees the last head only if it declares [Latest] or the head's type.
func (d DAG) Latest() *Node {
	if d.fail != nil {
		return d.fail.node
	}
	if d.log == nil {
		return nil
	}
	heads := d.log.heads()
	n := heads[len(heads)-1]
	if !d.allows(latest, "", "") && !d.shows(n.typ) {
		d.refuse(n.typ, "")
		return nil
	}
	return n
}

// here returns the node at which reads start: the first parent of the next node, or nil if the DAG is empty.
func (d DAG) here() *Node {
	if d.log == nil {
		return nil
	}
	from := d.log.from()
	return from[len(from)-1]
}

// Next returns the parents of the next node: first the node at which reads
// start, which is the latest head or, after a fan-out, the node before the fan-out;
// then the other heads.
func (d DAG) Next() []*Node { return slices.Clone(d.next()) }

// next is like Next, but the caller must not modify the result.
func (d DAG) next() []*Node {
	if d.log == nil {
		return nil
	}
	heads, here := d.log.heads(), d.here()
	if len(heads) == 1 && heads[0] == here {
		return heads
	}
	next := append(make([]*Node, 0, len(heads)+1), here)
	for _, h := range heads {
		if h.id != here.id {
			next = append(next, h)
		}
	}
	return next
}

// Nearest returns the nearest node of the given type: the first that is found by following first parents from the place of the
// next node. The cost does not depend on the depth. The error is a *ReadError, which wraps ErrMissing if there is no such node,
// and ErrUndeclared if the view of d does not allow the read.
func (d DAG) Nearest(typ string) (*Node, error) {
	if !d.allows(nearest, typ, "") {
		return nil, d.refuse(typ, "")
	}
	if n := d.here().nearest(typ); n != nil {
		return n, nil
	}
	return nil, &ReadError{Type: typ, Err: ErrMissing}
}

// All returns all nodes of the given type in append order, except the items of lost lanes. The cost depends only on the number of
// nodes returned. If the view of d does not allow the read, the error is a *ReadError that wraps ErrUndeclared.
func (d DAG) All(typ string) ([]*Node, error) {
	if !d.allows(all, typ, "") {
		return nil, d.refuse(typ, "")
	}
	return d.log.all(typ), nil
}

// Since returns the nodes of type typ that follow the nearest node of type after, oldest first. It reads only the current line:
// the nodes found by following first parents from the place of the next node. If the line has no node of type after, the result
// is empty. If the view of d does not allow the read, the error is a *ReadError that wraps ErrUndeclared.
func (d DAG) Since(typ, after string) ([]*Node, error) {
	if !d.allows(since, typ, after) {
		return nil, d.refuse(typ, after)
	}
	start := d.here().nearest(after)
	if start == nil {
		return nil, nil
	}
	var found []*Node
	for n := d.here(); n != start; n = n.Parent() {
		if n.typ == typ {
			found = append(found, n)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// Node returns the node with the given id, or nil if d has no such node. It searches the whole graph.
func (d DAG) Node(id ID) *Node {
	for n := range d.backward() {
		if n.id == id {
			if d.shows(n.typ) {
				return n
			}
			d.refuse(n.typ, "")
			return nil
		}
	}
	return nil
}

// Select returns the node with the given id and its chain of first parents, oldest first, or nil if d has no such node. If d has
// a view, only nodes whose types its queries name are returned.
func (d DAG) Select(id ID) []*Node {
	var line []*Node
	for n := d.Node(id); n != nil; n = n.Parent() {
		if d.shows(n.typ) {
			line = append(line, n)
		}
	}
	slices.Reverse(line)
	return line
}

// Window returns the last n nodes of Select(id), or all of them if there are fewer.
func (d DAG) Window(id ID, n int) []*Node {
	line := d.Select(id)
	return line[max(0, len(line)-max(0, n)):]
}

// Nodes returns an iterator over all nodes in append order, parents before children. If d has a view, it yields only nodes whose
// types its queries name.
func (d DAG) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, e := range slices.Backward(d.log.since(nil)) {
			for _, n := range e.nodes() {
				if d.shows(n.typ) && !yield(n) {
					return
				}
			}
		}
	}
}

// backward returns an iterator over all nodes, newest first.
func (d DAG) backward() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for e := d.log; e != nil; e = e.prev {
			for _, n := range slices.Backward(e.nodes()) {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// since returns the entries after base, newest first.
func (e *entry) since(base *entry) []*entry {
	var entries []*entry
	for at := e; at != base && at != nil; at = at.prev {
		entries = append(entries, at)
	}
	return entries
}

// Within returns a DAG with the same nodes whose reads are limited by the view v. If v is nil, reads are not limited.
func (d DAG) Within(v View) DAG {
	d.view = v
	return d
}
