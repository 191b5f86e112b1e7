package dag_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

// Every reader names what it reads, reads it, and reads nothing else.
func TestReaders(t *testing.T) {
	T, U := dag.NewType[string]("t"), dag.NewType[int]("u")
	full := dag.Of(T.With("a"), U.With(1), T.With("b"), U.With(2))
	onlyT := dag.Of(T.With("a"))
	join := func(s string, n int) string { return fmt.Sprint(s, n) }
	join3 := func(s string, n int, all []int) string { return fmt.Sprint(s, n, all) }
	for _, c := range []struct {
		name   string
		reader dag.Querier
		read   func(dag.DAG) (any, error)
		// want is what full, onlyT and the empty DAG answer; "missing" is ErrMissing
		queries, full, onlyT, empty string
	}{
		{"type", T, from(T), `["t"]`, "b", "a", "missing"},
		{"All", dag.All(T), from(dag.All(T)), `[every "t"]`, "[a b]", "[a]", "[]"},
		{"Since", dag.Since(U, T), from(dag.Since(U, T)), `["u" since "t"]`, "[2]", "[]", "[]"},
		{"Latest", dag.Latest, from(dag.Derive(dag.Latest, (*dag.Node).JSON)), `[the latest node]`, "2", `"a"`, "missing"},
		{"Lens of all", dag.Lens[any](), from(dag.Lens[any]()), `[the latest node]`, "2", "a", "missing"},
		{"Everything", dag.Everything, from(dag.Derive(dag.Everything, dag.DAG.Len)), `[everything]`, "4", "1", "0"},
		{"Maybe", dag.Maybe(U), from(dag.Derive(dag.Maybe(U), deref[int])), `[optional "u"]`, "2", "none", "none"},
		{"Maybe All", dag.Maybe(dag.All(U)), from(dag.Derive(dag.Maybe(dag.All(U)), deref[[]int])), `[optional every "u"]`, "[1 2]", "[]", "[]"},
		{"Maybe of two", dag.Maybe(dag.Derive2(T, U, join)), from(dag.Derive(dag.Maybe(dag.Derive2(T, U, join)), deref[string])), `[optional "t" optional "u"]`, "b2", "none", "none"},
		{"Nothing", dag.Nothing, from(dag.Derive(dag.Nothing, func(struct{}) string { return "as always" })), `[]`, "as always", "as always", "as always"},
		{"Derive2", dag.Derive2(T, U, join), from(dag.Derive2(T, U, join)), `["t" "u"]`, "b2", "missing", "missing"},
		{"Derive3", dag.Derive3(T, U, dag.All(U), join3), from(dag.Derive3(T, U, dag.All(U), join3)), `["t" "u" every "u"]`, "b2 [1 2]", "missing", "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(dag.Types(c.reader)); got != c.queries {
				t.Errorf("queries %s, want %s", got, c.queries)
			}
			for _, in := range []struct {
				dag  dag.DAG
				want string
			}{{full, c.full}, {onlyT, c.onlyT}, {dag.DAG{}, c.empty}} {
				if got := answer(c.read(in.dag)); got != in.want {
					t.Errorf("of %d nodes: got %s, want %s", in.dag.Len(), got, in.want)
				}
				declared := &view{queries: dag.Types(c.reader)}
				if got := answer(c.read(in.dag.Within(declared))); got != in.want || len(declared.refused) > 0 {
					t.Errorf("of %d nodes, with its own queries: got %s, want %s (refused %v)", in.dag.Len(), got, in.want, declared.refused)
				}
			}
			if _, err := c.read(full.Within(&view{})); !errors.Is(err, dag.ErrUndeclared) && c.name != "Latest" && c.name != "Lens of all" && c.name != "Nothing" {
				t.Errorf("without its queries: got %v, want ErrUndeclared", err)
			}
			undeclared := &view{}
			if c.read(full.Within(undeclared)); len(undeclared.refused) == 0 && c.name != "Nothing" {
				t.Error("a read without its queries was not reported")
			}
		})
	}
}

// A reader made of nil has the zero Query, which the validator rejects.
func TestReadersOfNothing(t *testing.T) {
	T := dag.NewType[string]("t")
	for name, r := range map[string]dag.Querier{
		"Derive of nil":       dag.Derive(nil, func(string) int { return 0 }),
		"Derive with nil":     dag.Derive[string, int](T, nil),
		"Derive2 with nil":    dag.Derive2[string, string, int](T, T, nil),
		"Derive3 of nil":      dag.Derive3(T, nil, T, func(string, int, string) int { return 0 }),
		"ReaderFunc with nil": dag.ReaderFunc[int](nil, T),
		"Maybe of nil":        dag.Maybe[int](nil),
	} {
		if !slices.ContainsFunc(dag.Types(r), func(q dag.Query) bool { return q.Type() == nil }) {
			t.Errorf("%s: queries %v, want one that asks for nothing", name, dag.Types(r))
		}
	}
}

// A lens reads a value of any node, as the Go type that it has here.
func TestLens(t *testing.T) {
	type doc struct {
		Deep struct {
			Words []string `json:"words"`
			Big   int64    `json:"big"`
		} `json:"deep"`
	}
	var v doc
	v.Deep.Words, v.Deep.Big = []string{"a", "b"}, 1<<53+1
	d := dag.Of(dag.NewType[doc]("doc").With(v))
	if got, err := dag.Lens[[]string]("deep", "words").From(d); err != nil || !slices.Equal(got, v.Deep.Words) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := dag.Lens[int64]("deep", "big").From(d); err != nil || got != v.Deep.Big {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := dag.Maybe(dag.Lens[string]("deep", "none")).From(d); err != nil || got != nil {
		t.Errorf("of no field: got %v, %v, want nil", got, err)
	}
	for want, r := range map[string]dag.Reader[int]{
		`the latest node has no such field: ["deep" "none"] in `: dag.Lens[int]("deep", "none"),
		`["deep" "words"] of the latest node, `:                  dag.Lens[int]("deep", "words"),
	} {
		if _, err := r.From(d); err == nil || !strings.HasPrefix(err.Error(), want) || errors.Is(err, dag.ErrMissing) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	q := dag.Types(dag.Lens[int]("deep", "big"))[0]
	if path, typ := q.Lens(); !slices.Equal(path, []string{"deep", "big"}) || typ == nil || !q.IsLatest() || q.String() != `"deep.big" of the latest node` {
		t.Errorf("the query is %s, with %q", q, path)
	}
	if path, typ := dag.Types(dag.Latest)[0].Lens(); path != nil || typ != nil {
		t.Errorf("Latest has the lens %q", path)
	}
}

func TestReadersDoNotAllocate(t *testing.T) {
	T := dag.NewType[string]("t")
	d := dag.Of(T.With("a"))
	size := dag.Derive(T, func(s string) int { return len(s) })
	if n := testing.AllocsPerRun(100, func() { size.From(d) }); n > 0 {
		t.Errorf("a read allocates %v times", n)
	}
}

func from[T any](r dag.Reader[T]) func(dag.DAG) (any, error) {
	return func(d dag.DAG) (any, error) { return r.From(d) }
}

func deref[T any](p *T) any {
	if p == nil {
		return "none"
	}
	return *p
}

func answer(v any, err error) string {
	if errors.Is(err, dag.ErrMissing) {
		return "missing"
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

func TestOf(t *testing.T) {
	T, F := dag.NewType[string]("t"), dag.NewType[float64]("f")
	d := dag.Of(T.With("a"), F.With(1))
	if d.Failed() || d.Len() != 2 || d.Latest().Parent().Text() != "a" {
		t.Errorf("got %v", slices.Collect(d.Nodes()))
	}
	if d := dag.Of(); d.Len() != 0 || d.Failed() {
		t.Errorf("of nothing: %d nodes", d.Len())
	}
	for name, v := range map[string]dag.Value{"no JSON": F.With(math.NaN()), "zero value": {}, "zero type": dag.Type[int]{}.With(1)} {
		d := dag.Of(T.With("a"), v, T.With("b"))
		content, err := dag.Failure.Of(d.Latest())
		if err != nil || d.Len() != 1 || d.Cause() == nil || content.Kind != "bad-content" || content.Reason != d.Cause().Error() {
			t.Errorf("%s: got %d nodes, %+v, %v", name, d.Len(), content, err)
		}
	}
}
