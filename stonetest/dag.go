package stonetest

import (
	"testing"

	"github.com/stonelayer/stone/dag"
)

// A Seed is a node that a test begins with; Node makes them.
type Seed func(dag.DAG) (dag.DAG, error)

// Node makes a seed of a type and its content.
func Node[T any](typ dag.Type[T], v T) Seed {
	return func(d dag.DAG) (dag.DAG, error) { return typ.Append(d, v) }
}

// DAG returns a DAG of these nodes, each after the one before. The test fails at
// once if one of them cannot be written.
func DAG(t testing.TB, nodes ...Seed) dag.DAG {
	t.Helper()
	var d dag.DAG
	for i, add := range nodes {
		next, err := add(d)
		if err != nil {
			t.Fatalf("stonetest.DAG: node %d: %v", i+1, err)
		}
		d = next
	}
	return d
}

// Nearest reads the nearest node of a type, as the result of a run. The test
// fails at once if there is none.
func Nearest[T any](t testing.TB, typ dag.Type[T], d dag.DAG) T {
	t.Helper()
	v, err := typ.From(d)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}
