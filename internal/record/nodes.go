package record

import (
	"slices"

	"github.com/stonelayer/stone/dag"
)

// Reached returns the DAG that consists of the heads and all their ancestors. Its order depends only on the heads. The DAG of an
// ended run is built in this way from the Heads of its Outcome. The recorded nodes are not enough: a step in a Flow is recorded
// with the node that the step created, but the run commits that node in a different place, with a different ID.
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

// HeadsOf returns the IDs of a DAG's heads, for Outcome.Heads.
func HeadsOf(d dag.DAG) []dag.ID {
	var ids []dag.ID
	for _, n := range d.Heads() {
		ids = append(ids, n.ID())
	}
	return ids
}

// Missing returns the ancestors of n that are not known, parents first. The first parent's ancestors come before the second
// parent's. If a node is known, all its ancestors are assumed to be known, too.
func Missing(n *dag.Node, known func(dag.ID) bool) []*dag.Node {
	var found []*dag.Node
	seen := map[dag.ID]bool{}
	type visit struct {
		node *dag.Node
		done bool // the node's parents have been visited
	}
	var todo []visit
	push := func(n *dag.Node) {
		for _, parent := range slices.Backward(n.Parents()) { // so that the first one is on top of the stack
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
