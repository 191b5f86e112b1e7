package dag_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

func TestMerge(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t b:t")
	left, right := build(t, base, "l:t l2:t"), build(t, base, "r:t")
	fanned := fan(t, base, "| x:l | y:l")
	for _, c := range []struct {
		name               string
		of                 []dag.DAG
		nodes, heads, next string
	}{
		{"nothing", nil, "", "", ""},
		{"empty ones", []dag.DAG{{}, {}}, "", "", ""},
		{"one", []dag.DAG{left}, "a b l l2", "l2", "l2"},
		{"with an empty one", []dag.DAG{{}, left, {}}, "a b l l2", "l2", "l2"},
		{"with itself", []dag.DAG{left, left}, "a b l l2", "l2", "l2"},
		{"with its start", []dag.DAG{left, base}, "a b l l2", "l2", "l2"},
		{"with its extension", []dag.DAG{base, left}, "a b l l2", "l2", "l2"},
		{"lanes", []dag.DAG{left, right}, "a b l l2 r", "l2 r", "r l2"},
		{"lanes the other way", []dag.DAG{right, left}, "a b r l l2", "r l2", "l2 r"},
		{"an extension, after a lane", []dag.DAG{base, right, left, build(t, left, "z:t")}, "a b r l l2 z", "r z", "z r"},
		{"an extension, after the start was shared", []dag.DAG{right, base, build(t, right, "z:t"), left}, "a b r z l l2", "z l2", "l2 z"},
		{"disjoint", []dag.DAG{build(t, dag.DAG{}, "x:t"), build(t, dag.DAG{}, "y:t y2:t")}, "x y y2", "x y2", "y2 x"},
		{"the same, made twice", []dag.DAG{left, build(t, dag.DAG{}, "a:t b:t l:t m:t")}, "a b l l2 m", "l2 m", "m l2"},
		{"an extension, made twice", []dag.DAG{right, base, build(t, right, "z:t"), build(t, dag.DAG{}, "a:t b:t r:t z:t m:t")}, "a b r z m", "m", "m"},
		{"a child of a head, made elsewhere", []dag.DAG{base, build(t, dag.DAG{}, "a:t b:t c:t")}, "a b c", "c", "c"},
		// Fan-outs: reading continues from the latest head, or for the head of a
		// lane from the node before the fan-out.
		{"a fan-out", []dag.DAG{base, fanned}, "a b x y", "x y", "b x y"},
		{"a fan-out with its start", []dag.DAG{fanned, base}, "a b x y", "x y", "b x y"},
		{"a fan-out with what follows", []dag.DAG{fanned, build(t, fanned, "c:t")}, "a b x y c", "c", "c"},
		{"two fan-outs", []dag.DAG{fanned, fan(t, base, "| v:l | w:l")}, "a b x y v w", "x y v w", "b x y v w"},
		{"a fan-out, then a line", []dag.DAG{fanned, left}, "a b x y l l2", "x y l2", "l2 x y"},
		{"a lane, then its fan-out", []dag.DAG{left, build(t, base, "x:l"), fan(t, base, "| x:l")}, "a b l l2 x", "l2 x", "x l2"},
		{"a line, then a fan-out", []dag.DAG{left, fanned}, "a b l l2 x y", "l2 x y", "b l2 x y"},
	} {
		d := dag.Merge(c.of...)
		wantNames(t, c.name+": nodes", slices.Collect(d.Nodes()), c.nodes)
		wantNames(t, c.name+": heads", d.Heads(), c.heads)
		wantNames(t, c.name+": next", d.Next(), c.next)
		for _, part := range c.of[:min(1, len(c.of))] {
			if !d.Extends(part) {
				t.Errorf("%s: does not extend the first", c.name)
			}
		}
	}
}

func TestMergeKeepsTheFirstFailureAndView(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t")
	failed := func(name string) dag.DAG {
		return d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: kind.Kind(name)}, nil, time.Time{}), errors.New(name))
	}
	for _, m := range []dag.DAG{
		dag.Merge(d, failed("one"), failed("two")),
		dag.Merge(dag.Merge(d, failed("one")), failed("two")),
		dag.Merge(d, dag.Merge(failed("one"), failed("two"))),
	} {
		if m.Cause() == nil || m.Cause().Error() != "one" || m.Len() != 1 {
			t.Errorf("cause %v, %d nodes", m.Cause(), m.Len())
		}
	}
	v := &view{}
	if _, err := dag.Merge(d.Within(v), build(t, d, "b:t")).All("t"); !errors.Is(err, dag.ErrUndeclared) {
		t.Errorf("merging lifted the limits of a view: %v", err)
	}
}
