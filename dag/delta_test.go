package dag_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

// TestDelta checks that a delta that went through JSON gives the same nodes again, and that it
// fits on another DAG.
func TestDelta(t *testing.T) {
	word := dag.NewType[string]("word")
	add := func(d dag.DAG, err error) dag.DAG {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := add(word.Append(dag.DAG{}, "base"))
	a := add(word.Append(add(dag.Lane(base, 1)), "a"))
	b := add(word.Append(add(word.Append(add(dag.Lane(base, 2)), "b")), "c"))
	delta, err := base.Delta(a, b)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(delta)
	if err != nil {
		t.Fatal(err)
	}
	var back dag.Delta
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	both := add(back.Apply(base))
	for i, n := range append(a.Beyond(base), b.Beyond(base)...) {
		if got := both.Beyond(base)[i]; got.ID() != n.ID() {
			t.Errorf("node %d is %s %s, want %s %s", i, got, got.JSON(), n, n.JSON())
		}
	}
	other := add(back.Apply(add(word.Append(dag.DAG{}, "other"))))
	if found, err := dag.All(word).From(other); err != nil || strings.Join(found, " ") != "other a b c" {
		t.Errorf("on another DAG: %q, %v", found, err)
	}
	for _, raw := range []string{
		`[{"type":"word","content":"x","parents":[0]}]`, `[{"type":"word","content":"x","parents":[-2]}]`, `[{"content":"x"}]`,
	} {
		var bad dag.Delta
		if err := json.Unmarshal([]byte(raw), &bad); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Apply(base); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
	if _, err := a.Delta(base); err == nil {
		t.Error("a lane that does not extend the DAG is taken")
	}
}
