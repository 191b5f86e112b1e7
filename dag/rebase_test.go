package dag_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
)

// history is a list of things to do to a DAG, so that the same can be done
// elsewhere.
type history []func(dag.DAG) (dag.DAG, error)

func (h history) on(t *rapid.T, d dag.DAG) dag.DAG {
	for _, do := range h {
		var err error
		if d, err = do(d); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

var rebased = dag.NewType[int]("rebased")

// past draws a history: nodes, and fan-outs within fan-outs.
func past(t *rapid.T, depth int) (h history) {
	for range rapid.IntRange(0, 4).Draw(t, "length") {
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		if depth == 0 || rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
			h = append(h, func(d dag.DAG) (dag.DAG, error) { return rebased.Append(d, n) })
			continue
		}
		lanes := make([]history, rapid.IntRange(1, 3).Draw(t, "lanes"))
		for i := range lanes {
			lanes[i] = past(t, depth-1)
		}
		h = append(h, func(d dag.DAG) (dag.DAG, error) {
			ends := make([]dag.DAG, len(lanes))
			for i, lane := range lanes {
				start, err := dag.Lane(d, i)
				if err != nil {
					return d, err
				}
				ends[i] = lane.on(t, start)
			}
			return dag.Join(d, ends)
		})
	}
	return h
}

func rebaseListing(d dag.DAG) (lines []string) {
	for n := range d.Nodes() {
		lines = append(lines, fmt.Sprint(n.ID(), n.Type(), n.JSON()))
	}
	for _, n := range append(d.Next(), d.Heads()...) {
		lines = append(lines, n.ID().String())
	}
	return lines
}

// Rebase produces the same nodes as appending in the first place.
func TestRebase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := func() dag.DAG {
			d, err := rebased.Append(dag.DAG{}, rapid.IntRange(0, 9).Draw(t, "seed"))
			if err != nil {
				t.Fatal(err)
			}
			return past(t, 1).on(t, d)
		}
		base, onto, h := seed(), seed(), past(t, 2)
		if rapid.IntRange(0, 3).Draw(t, "empty") == 0 {
			from, err := dag.Origin(dag.DAG{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := dag.Rebase(onto, h.on(t, from), dag.DAG{})
			if want := h.on(t, onto); err != nil || fmt.Sprint(rebaseListing(got)) != fmt.Sprint(rebaseListing(want)) {
				t.Fatalf("%v; got\n%v\nwant\n%v", err, rebaseListing(got), rebaseListing(want))
			}
			return
		}
		from := h.on(t, base)
		want := rebaseListing(h.on(t, onto))
		got, err := dag.Rebase(onto, from, base)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(rebaseListing(got)) != fmt.Sprint(want) {
			t.Fatalf("got\n%v\nwant\n%v", rebaseListing(got), want)
		}
		if !got.Extends(onto) || len(got.Beyond(onto)) != len(from.Beyond(base)) {
			t.Fatal("it does not extend that onto which it was put")
		}
		if len(h) == 0 {
			return
		}
		again, err := dag.Extend(base, from.Beyond(base))
		if err != nil || fmt.Sprint(rebaseListing(again)[:from.Len()]) != fmt.Sprint(rebaseListing(from)[:from.Len()]) {
			t.Fatalf("Extend gives other nodes: %v", err)
		}
	})
}

func TestRebaseFailure(t *testing.T) {
	at := time.Unix(7, 0).UTC()
	base, _ := rebased.Append(dag.DAG{}, 1)
	onto, _ := rebased.Append(dag.DAG{}, 2)
	from, _ := rebased.Append(base, 3)
	cause := fmt.Errorf("boom")
	failed := from.WithFailure(dag.NewFailure(from, dag.FailureContent{Kind: "k", Reason: "r"}, map[string]string{"path": "p"}, at), cause)
	got, err := dag.Rebase(onto, failed, base)
	if err != nil || got.Cause() != cause || got.Latest().Meta()["path"] != "p" || !got.Latest().Time().Equal(at) {
		t.Fatalf("%v, %v %v; want the failure with its meta and its time", err, got.Cause(), got.Latest())
	}
	recorded, err := got.RecordFailure()
	if err != nil || recorded.Len() != 3 || recorded.Latest().Parent().Type() != "rebased" {
		t.Fatalf("%v, %v; want the failure after the node", err, recorded.Latest())
	}
	if n, err := rebased.From(got); err != nil || n != 3 {
		t.Errorf("reads %d, %v; want 3", n, err)
	}
}

func TestRebaseRefuses(t *testing.T) {
	base, _ := rebased.Append(dag.DAG{}, 1)
	onto, _ := rebased.Append(dag.DAG{}, 2)
	if _, err := dag.Rebase(base, base, onto); err == nil {
		t.Error("it does not refuse a DAG that does not extend its base")
	}
	side, _ := rebased.Append(base, 3)
	branched, err := side.Append(mustNode(t, base.Latest()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dag.Rebase(onto, branched, side); err == nil {
		t.Error("it does not refuse a node whose parent is nowhere")
	}
	if _, err := dag.Extend(onto, branched.Beyond(side)); err == nil {
		t.Error("Extend does not refuse a node whose parent is nowhere")
	}
	if branched.Beyond(onto) != nil {
		t.Error("Beyond answers for a DAG that does not extend the other one")
	}
}

func mustNode(t *testing.T, parent *dag.Node) *dag.Node {
	n, err := dag.NewNode(dag.Spec{Type: "other", Content: 1, Parents: []*dag.Node{parent}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
