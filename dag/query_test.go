package dag_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct{ sketch, typ, want string }{
		{"", "t", ""},
		{"a:t", "t", "a"},
		{"a:t", "u", ""},
		{"a:t b:u c:t d:u", "t", "c"},
		{"a:t b:u c:u", "t", "a"},
		{"r:x a:t<r b:u<r", "t", ""},         // a is on another line
		{"r:x a:t<r b:u<r c:y<b,a", "t", ""}, // and still is behind a second parent
		{"r:x a:t<r b:u<r c:y<a,b", "t", "a"},
		{"r:t a:t<r b:u<r", "t", "r"},
		{"a:t b:t<", "t", "b"},
		{"a:t b:u<", "t", ""},
	} {
		d := build(t, dag.DAG{}, c.sketch)
		n, err := d.Nearest(c.typ)
		if got := strings.TrimPrefix(names([]*dag.Node{n}), "-"); got != c.want {
			t.Errorf("%s: nearest %s is %q, want %q", c.sketch, c.typ, got, c.want)
		}
		if missing := c.want == ""; missing != errors.Is(err, dag.ErrMissing) {
			t.Errorf("%s: nearest %s: error %v", c.sketch, c.typ, err)
		}
	}
}

func TestAll(t *testing.T) {
	for _, c := range []struct{ sketch, typ, want string }{
		{"", "t", ""},
		{"a:t b:u c:t", "t", "a c"},
		{"a:t b:u c:t", "v", ""},
		{"r:x b:t<r a:t<r c:u<b d:t<a", "t", "b a d"}, // append order, whatever the line
	} {
		got, err := build(t, dag.DAG{}, c.sketch).All(c.typ)
		if err != nil {
			t.Errorf("%s: %v", c.sketch, err)
		}
		wantNames(t, c.sketch, got, c.want)
	}
}

func TestSince(t *testing.T) {
	for _, c := range []struct{ sketch, typ, after, want string }{
		{"", "t", "s", ""},
		{"a:t b:t", "t", "s", ""}, // without a start there is nothing to collect within
		{"a:t s:s b:t c:u d:t", "t", "s", "b d"},
		{"s:s a:t s2:s b:t", "t", "s", "b"},
		{"a:t s:s", "t", "s", ""},
		{"s:s a:t<s b:t<s", "t", "s", "b"}, // not across lanes
		{"a:t b:t c:t", "t", "t", ""},      // the node itself is the boundary
	} {
		got, err := build(t, dag.DAG{}, c.sketch).Since(c.typ, c.after)
		if err != nil {
			t.Errorf("%s: %v", c.sketch, err)
		}
		wantNames(t, c.sketch, got, c.want)
	}
}

func TestSelectWindowNode(t *testing.T) {
	d := build(t, dag.DAG{}, "r:t a:t<r b:u<r c:t<b,a d:t<a")
	for _, c := range []struct {
		of                  string
		sel, last2, last100 string
	}{
		{"r", "r", "r", "r"},
		{"c", "r b c", "b c", "r b c"},
		{"d", "r a d", "a d", "r a d"},
	} {
		id := find(t, d, c.of).ID()
		wantNames(t, "select "+c.of, d.Select(id), c.sel)
		wantNames(t, "window of 2 to "+c.of, d.Window(id, 2), c.last2)
		wantNames(t, "window of 100 to "+c.of, d.Window(id, 100), c.last100)
		wantNames(t, "window of 0 to "+c.of, d.Window(id, 0), "")
		wantNames(t, "window of -1 to "+c.of, d.Window(id, -1), "")
		wantNames(t, "node "+c.of, []*dag.Node{d.Node(id)}, c.of)
	}
	if n := d.Node(dag.ID{1}); n != nil {
		t.Errorf("an id that is not there: got %s", n)
	}
	if line := d.Select(dag.ID{1}); line != nil {
		t.Errorf("an id that is not there: got %s", names(line))
	}
}

func TestUntypedReads(t *testing.T) {
	raw := func(s string) any { return stringRaw(s) }
	for _, c := range []struct {
		content any
		field   string
		want    any // of Get with the fallback "none"
		text    string
	}{
		{raw(`{"text":"hi","n":9007199254740993}`), "n", "9007199254740993", "hi"},
		{raw(`{"text":7}`), "text", "7", `{"text":7}`},
		{raw(`{"a":null}`), "a", nil, `{"a":null}`},
		{raw(`{"a":{"b":[true]}}`), "a", map[string]any{"b": []any{true}}, `{"a":{"b":[true]}}`},
		{raw(`[1]`), "a", "none", "[1]"},
		{"plain", "a", "none", "plain"},
		{nil, "a", "none", "null"},
	} {
		n := newNode(t, dag.Spec{Type: "t", Content: c.content})
		if got := n.Get(c.field, "none"); sprint(got) != sprint(c.want) {
			t.Errorf("%s: Get(%q) is %v, want %v", n.JSON(), c.field, got, c.want)
		}
		if n.Text() != c.text {
			t.Errorf("%s: Text is %q, want %q", n.JSON(), n.Text(), c.text)
		}
	}
	n := newNode(t, dag.Spec{Type: "t", Content: raw(`{"a":{"b":{"c":1}}}`)})
	for _, c := range []struct {
		path string
		want string
	}{
		{"a b c", "1 true"}, {"a b", "map[c:1] true"}, {"a x", "<nil> false"}, {"a b c d", "<nil> false"},
	} {
		v, ok := n.At(strings.Fields(c.path)...)
		if got := sprint(v, ok); got != c.want {
			t.Errorf("At(%s): %s, want %s", c.path, got, c.want)
		}
	}
	var none *dag.Node
	if v, ok := none.At("a"); ok || v != nil || none.Get("a", 1) != 1 || none.Text() != "" || none.Type() != "" || none.JSON() != "" ||
		none.Content() != nil || none.Parents() != nil || none.Parent() != nil || none.Meta() != nil || !none.Time().IsZero() || none.ID() != (dag.ID{}) {
		t.Error("a nil node does not answer as one without content")
	}
}

func TestQueriesReadAsAProgramWritesThem(t *testing.T) {
	T, U := dag.NewType[int]("t"), dag.NewType[int]("u")
	for _, c := range []struct {
		query dag.Querier
		want  string
	}{
		{T, `"t"`},
		{dag.All(T), `every "t"`},
		{dag.Since(T, U), `"t" since "u"`},
		{dag.Maybe(dag.All(T)), `optional every "t"`},
		{dag.Latest, "the latest node"},
		{dag.Everything, "everything"},
		{dag.Query{}, "nothing"},
		{dag.Query{}.All(), "every nothing"},
		{dag.Query{}.Since(nil), `nothing since ""`},
		{dag.Query{}.Optional(), "optional nothing"},
		{dag.Types(nil)[0], "nothing"},
	} {
		if got := c.query.Queries()[0].String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// Equal digests mean equal answers, and another answer has another digest.
func TestDigest(t *testing.T) {
	T, U := dag.NewType[note]("t"), dag.NewType[note]("u")
	// The sketches are in groups of equal answers.
	for _, c := range []struct {
		query  dag.Querier
		across bool
		groups [][]string
	}{
		{T.Query(), false, [][]string{{"", "a:u"}, {"a:t", "a:t b:u", "b:u< a:t<"}, {"b:u a:t"}, {"a:t a2:t"}}},
		{T.Query(), true, [][]string{{"", "a:u"}, {"a:t", "a:t b:u", "b:u a:t", "b:t a:t"}, {"a:t a2:t"}}},
		{dag.All(T), false, [][]string{{"", "a:u"}, {"a:t", "a:t b:u"}, {"b:u a:t"}, {"a:t b:t"}, {"a:t< b:t<"}, {"b:t< a:t<"}}},
		{dag.All(T), true, [][]string{{"", "a:u"}, {"a:t", "a:t b:u", "b:u a:t"}, {"a:t b:t", "a:t< b:t<"}, {"b:t a:t"}}},
		{dag.Since(T, U), true, [][]string{{"", "a:t", "u:u", "a:t u:u"}, {"u:u a:t", "b:t u:u a:t"}, {"u:u a:t b:t"}}},
		{dag.Latest, true, [][]string{{""}, {"a:t", "b:u a:t"}, {"a:u"}}},
		{dag.Everything, false, [][]string{{""}, {"a:t"}, {"a:t b:t"}, {"a:t< b:t<"}}},
		{dag.Everything, true, [][]string{{""}, {"a:t"}, {"a:t b:t"}, {"a:t< b:t<"}}},
		{dag.Query{}, false, [][]string{{"", "a:t"}}},
		{dag.Query{}.All(), true, [][]string{{"", "a:t"}}},
		{dag.Query{}.Since(nil), true, [][]string{{"", "a:t"}}},
	} {
		owner := map[dag.ID]int{}
		for i, group := range c.groups {
			digests := map[dag.ID]bool{}
			for _, sketch := range group {
				digests[c.query.Queries()[0].Digest(build(t, dag.DAG{}, sketch), c.across)] = true
			}
			if len(digests) != 1 {
				t.Errorf("%s, across %v: %q have %d digests, want one", c.query, c.across, group, len(digests))
			}
			for id := range digests {
				if other, ok := owner[id]; ok {
					t.Errorf("%s, across %v: %q and %q have one digest", c.query, c.across, c.groups[other], group)
				}
				owner[id] = i
			}
		}
	}
}

func TestTypedReads(t *testing.T) {
	Note, Start := dag.NewType[note]("t"), dag.NewType[note]("s")
	d := build(t, dag.DAG{}, "a:t s:s b:t c:t")
	one, err1 := Note.From(d)
	all, err2 := dag.All(Note).From(d)
	since, err3 := dag.Since(Note, Start).From(d)
	none, err4 := dag.Since(Note, nil).From(d)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if got := sprint(one, all, since, none); got != "c [a b c] [b c] []" {
		t.Errorf("got %s", got)
	}
	wrong := dag.NewType[int]("t")
	for _, read := range []func() error{
		func() error { _, err := wrong.From(d); return err },
		func() error { _, err := dag.All(wrong).From(d); return err },
		func() error { _, err := dag.Since(wrong, Start).From(d); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "cannot be read as int") {
			t.Errorf("error %v, want one that names the Go type", err)
		}
	}
	var missing *dag.ReadError
	if _, err := dag.NewType[note]("none").From(d); !errors.As(err, &missing) || missing.Type != "none" || !errors.Is(err, dag.ErrMissing) {
		t.Errorf("error %v, want a ReadError around ErrMissing", err)
	}
	if _, err := Note.Of(nil); !errors.Is(err, dag.ErrMissing) {
		t.Errorf("of a nil node: %v, want ErrMissing", err)
	}
}
