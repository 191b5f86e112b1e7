package stonetest

import (
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Run runs a pipeline that needs no model, or a part of one, on its input nodes, and
// returns the result. The test fails at once if the run fails.
func Run(t testing.TB, p stone.Ashlar, inputs ...dag.Value) stone.Result {
	t.Helper()
	res, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(inputs...)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return res
}

// Nearest returns the nearest value of a type, like the result of a run. The test fails
// at once if the DAG has none.
func Nearest[T any](t testing.TB, typ dag.Type[T], d dag.DAG) T {
	t.Helper()
	v, err := typ.From(d)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}
