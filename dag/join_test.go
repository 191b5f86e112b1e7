package dag_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
)

// Lanes are separated by bars in these sketches; what stands before the first
// one is the base, what stands after "then" follows the fan-out.
func fan(t testing.TB, d dag.DAG, sketch string) dag.DAG {
	t.Helper()
	sketch, then, _ := strings.Cut(sketch, " then ")
	parts := strings.Split(sketch, "|")
	base := build(t, d, parts[0])
	var lanes []dag.DAG
	for _, lane := range parts[1:] {
		lanes = append(lanes, build(t, base, lane))
	}
	if len(lanes) > 0 {
		base = join(t, base, lanes...)
	}
	return build(t, base, then)
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		sketch             string
		nodes, heads, next string
	}{
		{"a:t | x:l | y:l", "a x y", "x y", "a x y"},
		{"a:t | x:l x2:t | y:l", "a x x2 y", "x2 y", "a x2 y"},
		{"a:t b:t | x:l | y:l then c:t", "a b x y c", "c", "c"},
		{"a:t | x:l | | y:l", "a x y", "x y", "a x y"}, // a lane that added nothing
		{"a:t | | ", "a", "a", "a"},                    // nor did any
		{"a:t |", "a", "a", "a"},
		{"a:t", "a", "a", "a"},
		{"a:t | x:l y:t<x z:t<x | w:l", "a x y z w", "y z w", "a y z w"},
		// A base with two heads: what follows it has both as parents.
		{"a:t b:t< | x:l | y:l", "a b x y", "x y", "b x y"},
		// Heads of the base that no lane follows stay heads.
		{"a:t b:t< | x:l<b | y:l<b", "a b x y", "a x y", "b a x y"},
		{"a:t b:t< | x:l<a | y:l<a", "a b x y", "b x y", "b x y"},
		{"a:t b:t< | x:l<a | y:l<b", "a b x y", "x y", "b x y"},
		{"a:t b:t< | x:l<b | y:l", "a b x y", "x y", "b x y"},
		{"a:t | x:l< | y:l", "a x y", "x y", "a x y"}, // a lane with a root of its own
		// An appended node that does not follow the base is the latest head.
		{"a:t | x:l | y:l then z:t<x", "a x y z", "y z", "z y"},
	} {
		d := fan(t, dag.DAG{}, c.sketch)
		wantNames(t, c.sketch+": nodes", slices.Collect(d.Nodes()), c.nodes)
		wantNames(t, c.sketch+": heads", d.Heads(), c.heads)
		wantNames(t, c.sketch+": next", d.Next(), c.next)
	}
}

func TestReadingGoesOnWhereItWasBeforeTheFanOut(t *testing.T) {
	for _, c := range []struct{ sketch, typ, nearest, all string }{
		{"a:t | x:l p:t | y:l q:t", "t", "a", "a p q"},
		{"a:t | x:l p:u | y:l q:u", "u", "", "p q"},
		{"a:t | x:l p:u | y:l q:u then z:v", "u", "", "p q"},
		{"a:t | x:l p:u | y:l q:u then z:v", "t", "a", "a"},
		{"a:t | x:l p:u | y:l q:u then z:u", "u", "z", "p q z"},
	} {
		d := fan(t, dag.DAG{}, c.sketch)
		n, _ := d.Nearest(c.typ)
		if got := strings.TrimPrefix(names([]*dag.Node{n}), "-"); got != c.nearest {
			t.Errorf("%s: nearest %s is %q, want %q", c.sketch, c.typ, got, c.nearest)
		}
		all, _ := d.All(c.typ)
		wantNames(t, c.sketch+": all", all, c.all)
	}
	// A second fan-out right after the first one begins where that began.
	d := fan(t, fan(t, dag.DAG{}, "a:t | x:l | y:l"), "| v:l | w:l")
	wantNames(t, "two in a row: next", d.Next(), "a v w")
	wantNames(t, "two in a row: parents", find(t, d, "v").Parents(), "a x y")
}

func TestNestedFanOuts(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t")
	inner := fan(t, base, "x:l | x1:l | x2:l") // a lane that ends in a fan-out
	wantNames(t, "inner next", inner.Next(), "x x1 x2")
	d := join(t, base, inner, base, build(t, base, "y:l"))
	wantNames(t, "outer next", d.Next(), "a x1 x2 y")
	wantNames(t, "after", build(t, d, "b:t").Latest().Parents(), "a x1 x2 y")

	// The base itself ends in a fan-out, and some lanes add nothing to it.
	d = join(t, inner, inner, build(t, inner, "z:l"), inner)
	wantNames(t, "on a fan-out", d.Next(), "x z")
	wantShape(t, "nothing but empty lanes", join(t, inner, inner, inner), inner)
	// Of a lane that follows only one head of the base, the other stays a head,
	// and reading does not continue there.
	d = join(t, inner, build(t, inner, "z:l<x2"))
	wantNames(t, "on one head of a fan-out", d.Next(), "x x1 z")
}

func TestJoinRefuses(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t")
	stranger := build(t, build(t, dag.DAG{}, "a:t"), "b:t")
	for _, c := range []struct {
		name  string
		base  dag.DAG
		lanes []dag.DAG
		want  string
	}{
		{"empty base", dag.DAG{}, []dag.DAG{base}, "Origin"},
		{"another log", base, []dag.DAG{base, stranger}, "lane 1 does not extend"},
		{"an empty lane", base, []dag.DAG{{}}, "lane 0 does not extend"},
		{"the same start", base, []dag.DAG{build(t, base, "x:t"), build(t, base, "y:t"), build(t, base, "x:t z:t")}, "lanes 0 and 2 both have node t "},
		{"the same root inside", base, []dag.DAG{build(t, base, "x:t r:t<"), build(t, base, "y:t r:t<")}, "lanes 0 and 1 both have node t "},
	} {
		got, err := dag.Join(c.base, c.lanes)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		wantShape(t, c.name+": what is returned", got, c.base)
	}
}

func TestManyLanesAreGrouped(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t")
	for _, c := range []struct {
		lanes  int
		groups string // lanes under each join node, none if they are not grouped
	}{
		{1, ""}, {1000, ""}, {1001, "1000 1"}, {2500, "1000 1000 500"},
	} {
		lanes := make([]dag.DAG, c.lanes)
		for i := range lanes {
			lanes[i] = lane(t, base, i)
		}
		d := join(t, base, lanes...)
		joins, _ := d.All("stone/join")
		var groups []string
		for _, j := range joins {
			if j.Parent() != base.Latest() || j.JSON() != "{}" {
				t.Errorf("%d lanes: join node %s has the parent %s", c.lanes, j, j.Parent())
			}
			groups = append(groups, fmt.Sprint(len(j.Parents())-1))
		}
		if got := strings.Join(groups, " "); got != c.groups {
			t.Errorf("%d lanes: groups %q, want %q", c.lanes, got, c.groups)
		}
		if want := 1 + max(len(joins), c.lanes*(1-min(1, len(joins)))); len(d.Next()) != want {
			t.Errorf("%d lanes: the next node has %d parents, want %d", c.lanes, len(d.Next()), want)
		}
		markers, _ := d.All("stone/lane")
		for i, m := range markers {
			if want := fmt.Sprintf(`{"index":%d}`, i); m.JSON() != want {
				t.Fatalf("%d lanes: lane %d is %s: not in source order", c.lanes, i, m.JSON())
			}
		}
		if d.Len() != 1+len(markers)+len(joins) || len(markers) != c.lanes {
			t.Errorf("%d lanes: %d nodes, %d markers", c.lanes, d.Len(), len(markers))
		}
	}
}

func lane(t testing.TB, base dag.DAG, i int) dag.DAG {
	d, err := dag.Lane(base, i)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOrigin(t *testing.T) {
	d, err := dag.Origin(dag.DAG{})
	if err != nil || d.Len() != 1 || d.Latest().Type() != "stone/origin" {
		t.Errorf("of an empty DAG: %v, %v", d.Latest(), err)
	}
	again, err := dag.Origin(d)
	if err != nil {
		t.Fatal(err)
	}
	wantShape(t, "of a DAG with a node", again, d)
}

func TestFailureInFlight(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t")
	cause := errors.New("cause")
	at := time.Unix(1, 2)
	n := dag.NewFailure(d, dag.FailureContent{Kind: "timeout", Reason: "b\xffd"}, map[string]string{"k\xff": "v\xff"}, at)
	failed := d.WithFailure(n, cause)
	if !failed.Failed() || failed.Cause() != cause || failed.Latest() != n || failed.Len() != 1 || d.Failed() || d.Cause() != nil {
		t.Error("a failure in flight does not travel beside the nodes")
	}
	if n.JSON() != `{"kind":"timeout","reason":"b�d"}` || n.Meta()["k�"] != "v�" || !n.Time().Equal(at) {
		t.Errorf("failure node: %s, %v, %v", n.JSON(), n.Meta(), n.Time())
	}
	wantNames(t, "next", failed.Next(), "a")
	if recorded, err := d.RecordFailure(); err != nil || recorded.Len() != 1 {
		t.Errorf("nothing in flight: %v, %v", recorded, err)
	}
	recorded, err := failed.RecordFailure()
	if err != nil || recorded.InFlight() || !recorded.Failed() || recorded.Len() != 2 || recorded.Latest() != n {
		t.Errorf("recorded: %v, %v", recorded.Latest(), err)
	}
	if wf := failed.WithoutFailure(); wf.Failed() || wf.Len() != 1 {
		t.Error("WithoutFailure keeps the failure")
	}
	if _, err := d.WithFailure(nil, nil).RecordFailure(); err == nil {
		t.Error("recording no node: want an error")
	}
	if joined := join(t, d, build(t, d, "x:l").WithFailure(n, cause)); joined.Failed() {
		t.Error("a failure in a lane was carried over")
	}
}

func TestLost(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t")
	lanes := []dag.DAG{lane(t, base, 0), lane(t, base, 1), lane(t, base, 2)}
	for _, i := range []int{0, 2} {
		n := dag.NewFailure(lanes[i], dag.FailureContent{Kind: "k", Lane: &i}, nil, time.Time{})
		var err error
		if lanes[i], err = lanes[i].Append(n); err != nil {
			t.Fatal(err)
		}
	}
	d := join(t, base, lanes...)
	d, err := d.Append(dag.NewFailure(d, dag.FailureContent{Kind: "other"}, nil, time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	lost, err := dag.Lost(d)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lost {
		got = append(got, sprint(l.Index, l.Marker.JSON(), l.Failure.Get("lane", nil)))
	}
	if want := `0 {"index":0} 0, 2 {"index":2} 2`; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	broken := build(t, d, "x:failure")
	if lost, err := dag.Lost(broken); err == nil || len(lost) != 2 {
		t.Errorf("a failure node of another shape: %d lanes, error %v", len(lost), err)
	}
}
