package journal

import "github.com/stonelayer/stone/dag"

// Missing returns the nodes from which n was made that are not known, parents
// first. Whoever knows a node is taken to know all from which it was made.
func Missing(n *dag.Node, known map[dag.ID]bool) []*dag.Node {
	var found []*dag.Node
	seen := map[dag.ID]bool{}
	type visit struct {
		node *dag.Node
		done bool // its parents are found
	}
	var todo []visit
	push := func(n *dag.Node) {
		for _, parent := range n.Parents() {
			if id := parent.ID(); !known[id] && !seen[id] {
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
