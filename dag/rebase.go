package dag

import (
	"errors"
	"fmt"
	"slices"
)

// Beyond returns the nodes of d that base lacks, in append order. If d does not extend base, it returns nil. If d has a view,
// only nodes whose types its queries name are returned.
func (d DAG) Beyond(base DAG) []*Node {
	if !d.Extends(base) {
		return nil
	}
	var nodes []*Node
	for _, e := range slices.Backward(d.log.since(base.log)) {
		for _, n := range e.nodes() {
			if d.shows(n.typ) {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// Extend returns d with the given nodes added. None of them may be in d yet. It returns an error if a node's parent is neither in
// d nor earlier in nodes. Extend searches d back to the oldest parent.
func Extend(d DAG, nodes []*Node) (DAG, error) {
	known, wanted := make(map[ID]bool, len(nodes)), map[ID]*Node{}
	for _, n := range nodes {
		if n == nil || n.typ == "" {
			return d, errors.New("extend: want nodes made by NewNode or by a Type")
		}
		for _, p := range n.parents {
			if !known[p.id] {
				wanted[p.id] = n
			}
		}
		known[n.id] = true
	}
	for at := range d.backward() {
		if len(wanted) == 0 {
			break
		}
		delete(wanted, at.id)
	}
	for id, n := range wanted {
		return d, fmt.Errorf("extend: a parent of %s, %.12s, does not come before it", n, id)
	}
	d.log = d.log.extend(nodes, nil)
	return d, nil
}

// Rebase returns onto with the nodes that from has beyond base, as if they had been appended to onto. They have other parents and
// therefore other ids, but the same contents in the same order. Nodes that followed the heads of base follow the heads of onto.
// The origin node of an empty base is left out unless onto is empty. A failure in flight in from is kept.
//
// Rebase returns an error if from does not extend base, or if a copied node would have a parent that onto lacks.
func Rebase(onto, from, base DAG) (DAG, error) {
	if !from.Extends(base) {
		return onto, errors.New("rebase: the DAG does not extend its base: append to the DAG that was given")
	}
	if onto.log == base.log {
		from.view = onto.view
		return from, nil
	}
	m := mover{out: onto.WithoutFailure()}
	entries := from.log.since(base.log)
	if slices.ContainsFunc(entries, func(e *entry) bool { return e.group != nil }) {
		m.moved = map[ID]*Node{}
		if base.log != nil && onto.log != nil {
			m.moved[base.here().id] = onto.here()
		}
	}
	for _, e := range slices.Backward(entries) {
		if err := m.move(e); err != nil {
			return onto, err
		}
	}
	if fail := from.fail; fail != nil {
		if slices.Equal(fail.node.parents, from.next()) {
			fail = &flight{fail.node.under(m.out.next()), fail.cause}
		}
		m.out.fail = fail
	}
	return m.out, nil
}

// mover appends copies of log entries to another log.
type mover struct {
	out   DAG
	moved map[ID]*Node // maps old nodes to new nodes; nil if no entry is a group
}

func (m *mover) move(e *entry) error {
	if e.prev == nil && m.out.log != nil && e.node != nil && e.node.typ == origin.Name() {
		if m.moved != nil {
			m.moved[e.node.id] = m.out.here()
		}
		return nil
	}
	next := m.out.next()
	if e.group == nil { // the node follows all earlier heads in both logs
		n := e.node.under(next)
		if m.moved != nil {
			m.moved[e.node.id] = n
		}
		m.out = m.out.grow(n)
		return nil
	}
	before := DAG{log: e.prev}.next()
	nodes := make([]*Node, len(e.group.nodes))
	for i, n := range e.group.nodes {
		parents := next
		if !slices.Equal(n.parents, before) {
			parents = make([]*Node, len(n.parents))
			for k, p := range n.parents {
				if parents[k] = m.standsFor(p); parents[k] == nil {
					return fmt.Errorf("rebase %s: its parent %s is not in the new DAG", n, p)
				}
			}
		}
		nodes[i] = n.under(parents)
		m.moved[n.id] = nodes[i]
	}
	from := map[ID]*Node{}
	for i, h := range e.group.heads {
		if at := e.group.from[i]; at != h {
			from[m.standsFor(h).ID()] = m.standsFor(at)
		}
	}
	m.out.log = m.out.log.extend(nodes, from)
	return nil
}

// standsFor returns the node that replaces n in the new DAG: its copy, or n itself if the new DAG already has n. Otherwise it
// returns nil.
func (m *mover) standsFor(n *Node) *Node {
	if moved := m.moved[n.id]; moved != nil {
		return moved
	}
	return m.out.Within(nil).Node(n.id)
}

// under returns a copy of n with other parents, but the same type, content, meta and time.
func (n *Node) under(parents []*Node) *Node {
	quoted, err := quote(n.typ)
	if err != nil {
		// The name is valid, because a node has it.
		panic(err)
	}
	moved, _ := newNode(struct{}{}, false)
	moved.typ, moved.content, moved.parents = n.typ, n.content, parents
	moved.value, moved.meta, moved.at = n.value, n.meta, n.at
	e := openEnvelope()
	defer e.close()
	e.buf = append(e.buf, n.content...)
	moved.id = e.sum(parents, quoted)
	return moved
}
