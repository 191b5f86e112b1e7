package dag_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
)

// drawDAGs makes some DAGs that share much or nothing: each grows out of an
// earlier one by a node, by a fan-out or by a merge. Contents are few, so that
// the same node is made more than once, by different logs.
func drawDAGs(t *rapid.T) []dag.DAG {
	pool := []dag.DAG{{}}
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		pool = append(pool, grow(t, pool))
	}
	return pool
}

func pick(t *rapid.T, pool []dag.DAG) dag.DAG {
	return pool[len(pool)-1-rapid.IntRange(0, len(pool)-1).Draw(t, "back")]
}

func grow(t *rapid.T, pool []dag.DAG) dag.DAG {
	d := pick(t, pool)
	switch rapid.SampledFrom([]string{"line", "line", "anywhere", "fan", "fan"}).Draw(t, "op") {
	case "line":
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			d = appendOne(t, d, d.Next())
		}
		return d
	case "anywhere":
		nodes := slices.Collect(d.Nodes())
		var parents []*dag.Node
		if len(nodes) > 0 {
			parents = rapid.SliceOfN(rapid.SampledFrom(nodes), 0, 3).Draw(t, "parents")
		}
		return appendOne(t, d, parents)
	default:
		return fanOut(t, d, 2)
	}
}

func appendOne(t *rapid.T, d dag.DAG, parents []*dag.Node) dag.DAG {
	n, err := dag.NewNode(dag.Spec{
		Type:    rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "type"),
		Content: rapid.IntRange(0, 2).Draw(t, "content"),
		Parents: parents,
		Meta:    map[string]string{"é": "\u2028<"},
		Time:    time.Unix(0, rapid.Int64Range(-1, 1).Draw(t, "time")),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Append(n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fanOut joins some lanes, in some of which there is another fan-out.
func fanOut(t *rapid.T, d dag.DAG, depth int) dag.DAG {
	base, err := dag.Origin(d)
	if err != nil {
		t.Fatal(err)
	}
	var lanes []dag.DAG
	for i := range rapid.IntRange(1, 3).Draw(t, "lanes") {
		lane := base
		if rapid.Bool().Draw(t, "begins") {
			if lane, err = dag.Lane(base, i); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 20).Draw(t, "length") {
				lane = appendOne(t, lane, lane.Next())
			}
			if depth > 0 && rapid.Bool().Draw(t, "nested") {
				lane = fanOut(t, lane, depth-1)
			}
		}
		lanes = append(lanes, lane)
	}
	joined, err := dag.Join(base, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

func same(t *rapid.T, what string, got, want dag.DAG) {
	if g, w := shape(got), shape(want); g != w {
		t.Fatalf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

// The invariants of every DAG.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, d := range drawDAGs(t) {
			position := map[dag.ID]int{}
			inner := map[dag.ID]bool{}
			for n := range d.Nodes() {
				if _, twice := position[n.ID()]; twice {
					t.Fatalf("node %s is there twice", n)
				}
				for _, p := range n.Parents() {
					if _, ok := position[p.ID()]; !ok {
						t.Fatalf("node %s stands before its parent %s", n, p)
					}
					inner[p.ID()] = true
				}
				position[n.ID()] = len(position)
			}
			if len(position) != d.Len() {
				t.Fatalf("Len is %d, want %d", d.Len(), len(position))
			}
			var heads []*dag.Node
			for n := range d.Nodes() {
				if !inner[n.ID()] {
					heads = append(heads, n)
				}
			}
			if !slices.Equal(heads, d.Heads()) {
				t.Fatalf("heads are not the nodes without children, in append order\n%s", shape(d))
			}
			next := appendOne(t, d, d.Next())
			if len(next.Heads()) != 1 && d.Len() > 0 {
				t.Fatalf("a node with the parents of Next leaves other heads\n%s", shape(next))
			}
		}
	})
}

func TestIndexesAnswerAsAWalkDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := drawDAGs(t)
		// Which indexes there are depends on the order of the questions.
		for range 3 * len(pool) {
			d := pick(t, pool)
			typ := rapid.SampledFrom([]string{"t", "u", "v", "stone/lane", "stone/origin", "none"}).Draw(t, "type")
			if err := checkReads(d, typ); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// checkReads compares the answers of a DAG with what walking it gives.
func checkReads(d dag.DAG, typ string) error {
	var want []*dag.Node
	for n := range d.Nodes() {
		if n.Type() == typ {
			want = append(want, n)
		}
	}
	got, err := d.All(typ)
	if err != nil || !slices.Equal(got, want) {
		return fmt.Errorf("all %s: %d nodes, want %d (%v)\n%s", typ, len(got), len(want), err, shape(d))
	}
	var near *dag.Node
	if next := d.Next(); len(next) > 0 {
		near = next[0]
	}
	for near != nil && near.Type() != typ {
		near = near.Parent()
	}
	if n, err := d.Nearest(typ); n != near || (near == nil) != errors.Is(err, dag.ErrMissing) {
		return fmt.Errorf("nearest %s: %s, want %s (%v)\n%s", typ, n, near, err, shape(d))
	}
	return nil
}

func TestManyGoroutinesReadAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := drawDAGs(t)
		failed := make(chan error, 8)
		var readers sync.WaitGroup
		for r := range cap(failed) {
			readers.Go(func() {
				for i := range pool {
					d := pool[(i+r)%len(pool)]
					for _, typ := range []string{"t", "none", "u"} {
						if err := checkReads(d, typ); err != nil {
							failed <- err
							return
						}
					}
				}
			})
		}
		readers.Wait()
		close(failed)
		for err := range failed {
			t.Fatal(err)
		}
	})
}

func TestWriteThenReadGivesTheSameDAG(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, d := range drawDAGs(t) {
			var first, second bytes.Buffer
			if err := dag.Write(&first, d); err != nil {
				t.Fatal(err)
			}
			back, err := dag.Read(bytes.NewReader(first.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "read", back, d)
			want := slices.Collect(d.Nodes())
			for i, n := range slices.Collect(back.Nodes()) {
				if n.JSON() != want[i].JSON() || !n.Time().Equal(want[i].Time()) || fmt.Sprint(n.Meta()) != fmt.Sprint(want[i].Meta()) {
					t.Fatalf("read %s %s %v %v, want %s %v %v", n, n.JSON(), n.Time(), n.Meta(), want[i].JSON(), want[i].Time(), want[i].Meta())
				}
			}
			if err := dag.Write(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Fatalf("written again: %v\n%s\nwant\n%s", err, second.Bytes(), first.Bytes())
			}
		}
	})
}
