package dag_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
)

// view is a dag.View that remembers what was refused.
type view struct {
	queries []dag.Query
	refused []string
}

func (v *view) Declared() []dag.Query { return v.queries }
func (v *view) Undeclared(err *dag.ReadError) {
	v.refused = append(v.refused, strings.TrimSuffix(err.Type+"/"+err.After, "/"))
}

func TestViewLimitsReads(t *testing.T) {
	T, U, V := dag.NewType[note]("t"), dag.NewType[note]("u"), dag.NewType[note]("v")
	d := build(t, dag.DAG{}, "a:t b:u c:v d:t e:u")
	a, b := find(t, d, "a").ID(), find(t, d, "b").ID()
	reads := map[string]func(dag.DAG) error{
		"nearest t":   func(d dag.DAG) error { _, err := T.From(d); return err },
		"nearest u":   func(d dag.DAG) error { _, err := U.From(d); return err },
		"all t":       func(d dag.DAG) error { _, err := dag.All(T).From(d); return err },
		"all u":       func(d dag.DAG) error { _, err := dag.All(U).From(d); return err },
		"t since u":   func(d dag.DAG) error { _, err := dag.Since(T, U).From(d); return err },
		"t since v":   func(d dag.DAG) error { _, err := dag.Since(T, V).From(d); return err },
		"failures":    func(d dag.DAG) error { _, err := dag.Lost(d); return err },
		"latest":      func(d dag.DAG) error { return absent(d.Latest()) },
		"node a":      func(d dag.DAG) error { return absent(d.Node(a)) },
		"node b":      func(d dag.DAG) error { return absent(d.Node(b)) },
		"select b":    func(d dag.DAG) error { return absent(d.Select(b)...) },
		"write":       func(d dag.DAG) error { return dag.Write(new(bytes.Buffer), d) },
		"all of none": func(d dag.DAG) error { _, err := d.All(""); return err },
	}
	for _, c := range []struct {
		queries []dag.Query
		allowed string // reads that are, one a comma
		nodes   string // that Nodes shows
	}{
		{nil, "", ""},
		{dag.Types(T), "nearest t, node a", "a d"},
		{dag.Types(dag.Maybe(T)), "nearest t, node a", "a d"},
		{dag.Types(dag.All(T)), "all t, node a", "a d"},
		{dag.Types(T, dag.All(U)), "nearest t, all u, merged all u, latest, node a, node b, select b", "a b d e"},
		{dag.Types(dag.Since(T, U)), "t since u, node a", "a d"},
		{dag.Types(dag.Since(T, V)), "t since v, node a", "a d"},
		{dag.Types(dag.Latest), "latest", ""},
		{dag.Types(U), "nearest u, latest, node b, select b", "b e"},
		{dag.Types(dag.Failure), "", ""},
		{dag.Types(dag.All(dag.Failure)), "failures", ""},
		{dag.Types(dag.Query{}, dag.Query{}.All(), dag.Query{}.Since(nil)), "all of none", ""},
	} {
		allowed := strings.Split(c.allowed, ", ")
		for name, read := range reads {
			v := &view{queries: c.queries}
			err := read(d.Within(v))
			switch {
			case slices.Contains(allowed, name):
				if err != nil || v.refused != nil {
					t.Errorf("%s with %s: %v, refused %q", name, c.queries, err, v.refused)
				}
			case err == nil || len(v.refused) != 1:
				t.Errorf("%s with %s: error %v, reported %q, want one refusal", name, c.queries, err, v.refused)
			case !errors.Is(err, dag.ErrUndeclared) && !errors.Is(err, errAbsent):
				t.Errorf("%s with %s: error %v, want ErrUndeclared", name, c.queries, err)
			}
		}
		v := &view{queries: c.queries}
		wantNames(t, sprint(c.queries)+": nodes", slices.Collect(d.Within(v).Nodes()), c.nodes)
		if v.refused != nil {
			t.Errorf("%s: what Nodes leaves out was reported: %q", c.queries, v.refused)
		}
	}
	for name, read := range reads {
		for _, all := range []dag.DAG{d, d.Within(&view{queries: dag.Types(dag.Everything)})} {
			if err := read(all); err != nil && !errors.Is(err, dag.ErrMissing) {
				t.Errorf("%s with everything: %v", name, err)
			}
		}
	}
}

var errAbsent = errors.New("absent")

func absent(nodes ...*dag.Node) error {
	if len(nodes) == 0 || nodes[0] == nil {
		return errAbsent
	}
	return nil
}

func TestViewLeavesOutOfALineWhatIsNotDeclared(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t b:u c:t")
	v := &view{queries: dag.Types(dag.NewType[note]("t"))}
	wantNames(t, "select", d.Within(v).Select(find(t, d, "c").ID()), "a c")
	wantNames(t, "window", d.Within(v).Window(find(t, d, "c").ID(), 2), "a c")
	if v.refused != nil {
		t.Errorf("reported %q", v.refused)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t").Within(&view{})
	_, all := d.All("t")
	_, since := d.Since("t", "s")
	for _, c := range []struct {
		err  error
		want string
	}{
		{all, `read of "t" is not declared: add it to the queries of this step`},
		{since, `read of "t" since "s" is not declared: add it to the queries of this step`},
		{dag.Write(new(bytes.Buffer), d), `read of everything is not declared: add it to the queries of this step`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
}

// Appending through a view adds to the graph, and keeps the view.
func TestViewStaysWhenSomethingIsAppended(t *testing.T) {
	v := &view{queries: dag.Types(dag.NewType[note]("t"))}
	d := build(t, dag.DAG{}, "a:t").Within(v)
	d, err := dag.NewType[note]("u").Append(d, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Nearest("u"); !errors.Is(err, dag.ErrUndeclared) {
		t.Errorf("error %v, want ErrUndeclared", err)
	}
	if n, err := d.Within(nil).Nearest("u"); err != nil {
		t.Errorf("%v, %v", n, err)
	}
	failed := d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: "k"}, nil, time.Time{}), nil)
	if failed.Latest().Type() != "failure" {
		t.Error("a failure in flight is seen by every reader")
	}
}
