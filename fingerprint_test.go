package stone_test

import (
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Whatever of a pipeline can be seen from outside is in its fingerprint.
func TestFingerprint(t *testing.T) {
	until := func(max int) stone.Ashlar {
		return stone.Loop("l", say("a", "x"), stone.Until(word, func(string) bool { return true }), max)
	}
	on := stone.On(word, func(w string) string { return w })
	different := []stone.Ashlar{
		say("a", "x"), say("b", "x"), say("a", "x", stone.Version("2")), say("a", "x", stone.Queries(number)),
		say("a", "x", stone.Queries(dag.All(number))), say("a", "x", stone.Queries(dag.Maybe(number))),
		say("a", "x", stone.Queries(dag.Since(number, word))), numbers(1),
		stone.Seq("a", say("a", "x")), stone.Seq("a", say("a", "x"), say("a", "x")), stone.Reduce(say("a", "x")),
		stone.Seq("a", stone.Seq("a", say("a", "x"))), stone.Seq("a", say("b", "x")),
		until(1), until(2),
		stone.Match("m", on, stone.Case("x", say("a", "x"))), stone.Match("m", on, stone.Case("y", say("a", "x"))),
		stone.Match("m", on, stone.Case("x", say("a", "x")), stone.Case("y", say("a", "x"))),
		stone.Match("m", stone.Lens("a"), stone.Case("x", say("a", "x"))), stone.Match("m", stone.Lens("b"), stone.Case("x", say("a", "x"))),
		stone.Map("m", list, number, say("a", "x")), stone.Map("m", list, number, say("a", "x"), stone.Lanes(2)),
		stone.Map("m", list, number, say("a", "x"), stone.Quorum(2)), stone.Map("m", list, number, say("a", "x"), stone.AllLanes()),
		stone.Ask("a", dag.Nothing, reply, text("")), stone.Ask("a", dag.Nothing, reply, text(""), stone.Choices("x")),
		{}, stone.Func0[chan int]("a", dag.NewType[chan int]("c"), nil), stone.Leaf("a", nil, nil),
	}
	seen := map[dag.ID]int{}
	for i, a := range different {
		print := a.Fingerprint()
		if j, ok := seen[print]; ok {
			t.Errorf("pipelines %d and %d have one fingerprint", i, j)
		}
		if seen[print] = i; print != a.Fingerprint() {
			t.Errorf("pipeline %d has two fingerprints", i)
		}
	}
	if say("a", "x").Fingerprint() != say("a", "y").Fingerprint() {
		t.Error("two leaves that differ inside only have different fingerprints")
	}
}
