package stone_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// writes makes a Scoped whose body appends the length of the last word that its child
// wrote.
func writes(walk func(stone.Walk) stone.Walk) stone.Ashlar {
	child := say("child", "four")
	return stone.Scoped("count", walk(stone.Walk{}.InOrder(child).Reads()), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		d = stone.In(ctx).RunChild(child, d)
		text, err := word.From(d)
		if err != nil {
			return d, err
		}
		return number.Append(d, len(text))
	}, word)
}

// A Scoped can append nodes of its own; Writes tells the validator.
func TestScopedThatWrites(t *testing.T) {
	double := stone.Func("double", number, number, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	declared := writes(func(w stone.Walk) stone.Walk { return w.Writes(number) })
	if n, err := stone.Produce(t.Context(), stone.Seq("p", declared, double), number, stone.Config{}); n != 8 || err != nil {
		t.Errorf("got %d, %v, want 8", n, err)
	}
	silent := writes(func(w stone.Walk) stone.Walk { return w })
	if found := stone.Validate(stone.Seq("p", silent, double), stone.Given{}); len(found) != 1 || found[0].Type != "missing-producer" {
		t.Errorf("without Writes: got %v, want a missing producer", found)
	}

	if got := declared.ProducesAll(); len(got) != 2 || got[0].Name() != number.Name() {
		t.Errorf("produces %v, want the number and the word of the child", got)
	}
	if declared.Schema() != number.Schema() || silent.Schema() != word.Schema() {
		t.Error("the schema is not that of the node that is written last")
	}
	if declared.Fingerprint() == silent.Fingerprint() {
		t.Error("one fingerprint for two declarations")
	}
}
