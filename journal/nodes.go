package journal

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/dag"
)

// Node returns the node of a run whose id begins with prefix. The error is
// ErrNoNode, or says that there are several.
func Node(ctx context.Context, j Reader, run, prefix string) (*dag.Node, error) {
	d, err := j.DAG(ctx, run)
	if err != nil {
		return nil, err
	}
	var found *dag.Node
	for n := range d.Nodes() {
		if !strings.HasPrefix(n.ID().String(), prefix) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("run %q has several nodes whose id begins with %q, as %.16s and %.16s: give more of it", run, prefix, found.ID(), n.ID())
		}
		found = n
	}
	if found == nil {
		return nil, fmt.Errorf("run %q, node %q: %w", run, prefix, ErrNoNode)
	}
	return found, nil
}

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
