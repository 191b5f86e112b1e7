package dag_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

type triage struct {
	Area string `json:"area" enum:"bug,billing"`
}

// TestEnumIsKept: content written by code must match the list of its type, like the
// answers of models.
func TestEnumIsKept(t *testing.T) {
	typ := dag.NewType[triage]("triage")
	d, err := typ.Append(dag.DAG{}, triage{"bug"})
	if err != nil {
		t.Fatal(err)
	}
	after, err := typ.Append(d, triage{"blue"})
	const want = `content of a "triage" node: does not fit the schema: area: want "bug" or "billing", got "blue"`
	if err == nil || err.Error() != want || after.Len() != 1 {
		t.Errorf("got %d nodes and %v, want %s", after.Len(), err, want)
	}
	if _, err := typ.Lanes(d, []triage{{"bug"}, {"red"}}); err == nil {
		t.Error("an item of a map was not checked")
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = typ.Append(d, triage{"bug"}) }); allocs > 6 {
		t.Errorf("%v allocations for a node with a list", allocs)
	}
}

// TestLossyTypesAreNotWritten: a type that would lose data is rejected at the first
// write, also outside a run.
func TestLossyTypesAreNotWritten(t *testing.T) {
	for _, err := range []error{
		appended(struct{ hidden string }{"x"}),
		appended(struct{ Err error }{}),
	} {
		if err == nil || !strings.Contains(err.Error(), `type "lossy": schema: `) {
			t.Errorf("got %v", err)
		}
	}
}

func appended[T any](v T) error {
	_, err := dag.NewType[T]("lossy").Append(dag.DAG{}, v)
	return err
}
