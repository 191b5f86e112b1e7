package record

import (
	"slices"

	"github.com/stonelayer/stone/dag"
)

// Reached returns the DAG of the heads and all their ancestors. Its order depends on the
// heads alone. The DAG of an ended run is built from the Heads of its Outcome: a
// step of a Flow is recorded with the node that it made, but the run commits that node in
// another place under another id.
func Reached(heads []*dag.Node) (dag.DAG, error) {
	var nodes []*dag.Node
	known := map[dag.ID]bool{}
	for _, head := range heads {
		for _, n := range append(Missing(head, func(id dag.ID) bool { return known[id] }), head) {
			if !known[n.ID()] {
				known[n.ID()], nodes = true, append(nodes, n)
			}
		}
	}
	return dag.Extend(dag.DAG{}, nodes)
}

// HeadsOf returns a DAG's head ids, for Outcome.Heads.
func HeadsOf(d dag.DAG) []dag.ID {
	var ids []dag.ID
	for _, n := range d.Heads() {
		ids = append(ids, n.ID())
	}
	return ids
}

// Missing returns the ancestors of n that are not known, parents first, ancestors of the
// first parent before ancestors of the second. All ancestors of a known node are taken as
// known.
func Missing(n *dag.Node, known func(dag.ID) bool) []*dag.Node {
	var found []*dag.Node
	seen := map[dag.ID]bool{}
	type visit struct {
		node *dag.Node
		done bool // its parents are found
	}
	var todo []visit
	push := func(n *dag.Node) {
		for _, parent := range slices.Backward(n.Parents()) { // the first one is on top
			if id := parent.ID(); !known(id) && !seen[id] {
				todo = append(todo, visit{node: parent})
			}
		}
	}
	for push(n); len(todo) > 0; {
		v := &todo[len(todo)-1]
		id := v.node.ID()
		switch {
		case !v.done && !seen[id]:
			v.done, seen[id] = true, true
			push(v.node)
			continue
		case v.done:
			found = append(found, v.node)
		}
		todo = todo[:len(todo)-1]
	}
	return found
}
