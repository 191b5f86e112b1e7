package dag

// Compare returns the nodes that are only in a and the nodes that are only in b, each in append order. Two DAGs of the same
// work have no difference, whenever and wherever it was done: the id of a node covers its
// type, content and parents, not its time and meta. So a node with another content makes all nodes after it
// differ, and the lists begin where the two diverge.
func Compare(a, b DAG) (onlyA, onlyB []*Node) {
	return without(a, b), without(b, a)
}

// without returns the nodes of d that other lacks.
func without(d, other DAG) (nodes []*Node) {
	known := map[ID]bool{}
	for n := range other.Nodes() {
		known[n.ID()] = true
	}
	for n := range d.Nodes() {
		if !known[n.ID()] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
