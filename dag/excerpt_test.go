package dag_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
)

// An excerpt answers its queries like its original DAG, also after a round trip through
// JSON.
func TestExcerpt(t *testing.T) {
	types := []dag.Type[int]{dag.NewType[int]("a"), dag.NewType[int]("b"), dag.NewType[int]("c")}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom(types)
		var d dag.DAG
		grow := func(d dag.DAG, n int) dag.DAG {
			for range n {
				var err error
				if d, err = one.Draw(t, "type").Append(d, rapid.IntRange(0, 3).Draw(t, "content")); err != nil {
					t.Fatal(err)
				}
			}
			return d
		}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			d = grow(d, rapid.IntRange(0, 20).Draw(t, "nodes"))
			if !rapid.Bool().Draw(t, "fan") {
				continue
			}
			base, err := dag.Origin(d)
			if err != nil {
				t.Fatal(err)
			}
			lanes := make([]dag.DAG, 3)
			for i := range lanes {
				lane, err := dag.Lane(base, i)
				if err != nil {
					t.Fatal(err)
				}
				lanes[i] = grow(lane, rapid.IntRange(0, 3).Draw(t, "lane"))
			}
			if d, err = dag.Join(base, lanes); err != nil {
				t.Fatal(err)
			}
		}
		queries := make([]dag.Query, rapid.IntRange(0, 4).Draw(t, "queries"))
		for i := range queries {
			typ := one.Draw(t, "query").Query()
			queries[i] = rapid.SampledFrom([]dag.Query{
				typ, typ.All(), typ.Since(one.Draw(t, "after")), dag.Types(dag.Latest)[0], dag.Types(dag.Everything)[0],
			}).Draw(t, "mode")
		}
		raw, err := json.Marshal(dag.NewExcerpt(d, queries...))
		if err != nil {
			t.Fatal(err)
		}
		var x dag.Excerpt
		if err := json.Unmarshal(raw, &x); err != nil {
			t.Fatal(err)
		}
		got := x.DAG()
		for _, q := range append(queries, dag.Types(dag.Latest)...) {
			for _, across := range []bool{false, true} {
				if q.Digest(d, across) != q.Digest(got, across) {
					t.Errorf("%s, across %t: the excerpt answers otherwise\n%s", q, across, raw)
				}
			}
		}
		if got, err = types[0].Append(got, 7); err != nil || got.Len() == 0 {
			t.Errorf("the excerpt cannot be extended: %v", err)
		}
	})
}

func TestBadExcerpt(t *testing.T) {
	for _, text := range []string{
		`{"nodes":[{"id":"` + (dag.ID{}).String() + `","type":"a","content":1}]}`,
		`{"nodes":[{"id":"` + (dag.ID{}).String() + `","type":"a","content":1}],"line":[0,0]}`,
		`{"nodes":[{"id":"` + (dag.ID{}).String() + `","type":"a","content":1}],"line":[1]}`,
		`{"nodes":[{"id":"` + (dag.ID{}).String() + `","type":"a","content":1}],"line":[0],"latest":1}`,
		`{"nodes":[{"id":"x","type":"a","content":1}]}`, `{"nodes":[{"type":"","content":1}]}`, `{"whole":"x"}`, `[]`,
	} {
		var x dag.Excerpt
		if err := json.Unmarshal([]byte(text), &x); err == nil {
			t.Errorf("%s is read without an error", text)
		}
	}
}

// An excerpt can travel without its large contents, which must come back unchanged.
func TestDetach(t *testing.T) {
	small, big := dag.NewType[string]("small"), dag.NewType[string]("big")
	d := must(big.Append(must(small.Append(dag.DAG{}, "s")), strings.Repeat("<b>", 100)))
	x, contents := dag.NewExcerpt(d, slices.Concat(small.Queries(), big.Queries())...).Detach(100)
	raw := must(json.Marshal(x))
	if len(contents) != 1 || bytes.Contains(raw, []byte("b>")) || bytes.Contains(raw, []byte("u003e")) {
		t.Fatalf("%d contents are apart from %s", len(contents), raw)
	}
	read := func() (x dag.Excerpt) {
		t.Helper()
		if err := json.Unmarshal(raw, &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	back := read()
	if err := back.Attach(contents); err != nil {
		t.Fatal(err)
	}
	if got := must(big.From(back.DAG())); got != strings.Repeat("<b>", 100) {
		t.Errorf("got %q", got)
	}
	if got, want := back.DAG().Latest().ID(), d.Latest().ID(); got != want || len(back.Apart()) != 0 {
		t.Errorf("node %s, want %s, %d contents are apart", got, want, len(back.Apart()))
	}
	for name, contents := range map[string]map[dag.ID]json.RawMessage{"none": nil, "another": {read().Apart()[0]: json.RawMessage(`"x"`)}} {
		if x := read(); x.Attach(contents) == nil {
			t.Errorf("%s: a content that does not match was attached", name)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
