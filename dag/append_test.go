package dag_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		sketch             string
		nodes, heads, next string
	}{
		{"", "", "", ""},
		{"a:t", "a", "a", "a"},
		{"a:t b:t", "a b", "b", "b"},
		{"a:t b:t<", "a b", "a b", "b a"},
		{"a:t b:t<a c:t<a", "a b c", "b c", "c b"},
		{"a:t b:t<a c:t<a d:t", "a b c d", "d", "d"},
		{"a:t b:t<a c:t<a d:t<b", "a b c d", "c d", "d c"},
		{"a:t b:t<a c:t<a d:t<b,c", "a b c d", "d", "d"},
		{"a:t b:t c:t<a", "a b c", "b c", "c b"},
		{"a:t a:t<", "a", "a", "a"},                      // there already
		{"a:t b:t<a c:t<a b:t<a", "a b c", "b c", "c b"}, // there already
		{"a:t b:t c:t b:t<a", "a b c", "c", "c"},         // there already
		{"a:t b:t<a,a", "a b", "b", "b"},
	} {
		d := build(t, dag.DAG{}, c.sketch)
		var nodes []*dag.Node
		for n := range d.Nodes() {
			nodes = append(nodes, n)
		}
		wantNames(t, c.sketch+": nodes", nodes, c.nodes)
		wantNames(t, c.sketch+": heads", d.Heads(), c.heads)
		wantNames(t, c.sketch+": next", d.Next(), c.next)
		if d.Len() != len(nodes) {
			t.Errorf("%s: Len %d, want %d", c.sketch, d.Len(), len(nodes))
		}
		if latest := names([]*dag.Node{d.Latest()}); latest != names(d.Heads()[max(0, len(d.Heads())-1):]) && d.Len() > 0 {
			t.Errorf("%s: latest is %s", c.sketch, latest)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t b:t")
	stranger := newNode(t, dag.Spec{Type: "t", Content: "stranger"})
	orphan := newNode(t, dag.Spec{Type: "t", Content: "orphan", Parents: []*dag.Node{find(t, d, "a"), stranger}})
	for _, c := range []struct {
		node *dag.Node
		want string
	}{
		{nil, "got nil or a zero Node"},
		{new(dag.Node), "got nil or a zero Node"},
		{orphan, "parent " + stranger.String()},
	} {
		got, err := d.Append(c.node)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.node, err, c.want)
		}
		wantShape(t, "after a refusal", got, d)
	}
	if _, err := (dag.DAG{}).Append(orphan); err == nil {
		t.Error("an empty DAG took a node with parents")
	}
}

func TestDAGsAreValues(t *testing.T) {
	base := build(t, dag.DAG{}, "a:t b:t<a c:t<a")
	before := shape(base)
	left := build(t, base, "l:t l2:t x:t<b")
	right := build(t, base, "r:t<c r2:t")
	if shape(base) != before {
		t.Errorf("appending to a copy changed the original:\n%s", shape(base))
	}
	wantNames(t, "left", left.Heads(), "l2 x")
	wantNames(t, "right", right.Heads(), "r2")
	left.Heads()[0], left.Next()[0] = nil, nil
	wantNames(t, "left after its answers were changed", left.Next(), "x l2")
	if n := left.Latest(); n != nil {
		n.Parents()[0] = nil
		wantNames(t, "parents after the answer was changed", n.Parents(), "b")
	}
}

// Two nodes of one id are one node, wherever they were made.
func TestAppendComparesByID(t *testing.T) {
	one, other := build(t, dag.DAG{}, "a:t"), build(t, dag.DAG{}, "a:t")
	child := newNode(t, dag.Spec{Type: "t", Content: "b", Parents: other.Next()})
	d, err := one.Append(child)
	if err != nil {
		t.Fatal(err)
	}
	wantShape(t, "a parent that was made elsewhere", d, build(t, one, "b:t"))
	again, err := d.Append(newNode(t, dag.Spec{Type: "t", Content: "a"}))
	if err != nil {
		t.Fatal(err)
	}
	wantShape(t, "a node that was made elsewhere", again, d)

	fanned := join(t, one, build(t, one, "x:lane"), build(t, one, "y:lane"))
	parents := []*dag.Node{other.Latest()}
	parents = append(parents, fanned.Heads()...)
	d, err = fanned.Append(newNode(t, dag.Spec{Type: "t", Content: "b", Parents: parents}))
	if err != nil {
		t.Fatal(err)
	}
	wantShape(t, "after a fan-out, with a base that was made elsewhere", d, build(t, fanned, "b:t"))
}

func TestContentCrossesByCopy(t *testing.T) {
	type deep struct {
		List []int           `json:"list"`
		Map  map[string]*int `json:"map"`
	}
	Deep := dag.NewType[deep]("deep")
	one := 1
	v := deep{List: []int{1, 2}, Map: map[string]*int{"one": &one}}
	d, err := Deep.Append(dag.DAG{}, v)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"list":[1,2],"map":{"one":1}}`
	v.List[0], v.Map["two"], one = 9, nil, 9

	read, err := Deep.From(d)
	if err != nil {
		t.Fatal(err)
	}
	if read.List[0] != 1 || len(read.Map) != 1 || *read.Map["one"] != 1 {
		t.Errorf("a later change by the writer is visible: %+v", read)
	}
	read.List[0], *read.Map["one"] = 8, 8
	d.Latest().Content()[0] = 'x'
	if got := d.Latest().JSON(); got != want {
		t.Errorf("what a reader did shows: %s, want %s", got, want)
	}
	again, err := Deep.From(d)
	if err != nil || again.List[0] != 1 || *again.Map["one"] != 1 {
		t.Errorf("what a reader did shows: %+v, %v", again, err)
	}
}

// A value that is kept beside its JSON is handed out only as the very type that
// was written, or a live run and a resumed one would read different values.
func TestReadingDoesNotDependOnWhoWrote(t *testing.T) {
	type flat struct {
		N int `json:"n"`
	}
	type other struct {
		N int64 `json:"n"`
	}
	live, err := dag.NewType[flat]("t").Append(dag.DAG{}, flat{1})
	if err != nil {
		t.Fatal(err)
	}
	stored := newNode(t, dag.Spec{Type: "t", Content: live.Latest().Content()})
	for _, n := range []*dag.Node{live.Latest(), stored} {
		if v, err := dag.NewType[any]("t").Of(n); err != nil || v.(map[string]any)["n"] != 1.0 {
			t.Errorf("as any: %#v, %v", v, err)
		}
		if v, err := dag.NewType[other]("t").Of(n); err != nil || v != (other{1}) {
			t.Errorf("as another struct: %#v, %v", v, err)
		}
		if v, err := dag.NewType[flat]("t").Of(n); err != nil || v != (flat{1}) {
			t.Errorf("as what it is: %#v, %v", v, err)
		}
		if _, err := dag.NewType[string]("t").Of(n); err == nil || !strings.Contains(err.Error(), "string") {
			t.Errorf("as a string: %v, want an error", err)
		}
		if _, err := dag.NewType[flat]("u").Of(n); err == nil || !strings.Contains(err.Error(), `"u"`) {
			t.Errorf("as another type: %v, want an error", err)
		}
	}
}
