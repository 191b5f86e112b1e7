package dag_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

// note is the node content in a sketch: the node's name.
type note = string

// build appends what a sketch says: words "name:type" whose parents are those
// of the next node, "name:type<p,q" with parents p and q, "name:type<" without.
func build(t testing.TB, d dag.DAG, sketch string) dag.DAG {
	t.Helper()
	for word := range strings.FieldsSeq(sketch) {
		d = add(t, d, word)
	}
	return d
}

func add(t testing.TB, d dag.DAG, word string) dag.DAG {
	t.Helper()
	what, parents, explicit := strings.Cut(word, "<")
	name, typ, _ := strings.Cut(what, ":")
	spec := dag.Spec{Type: typ, Content: name, Parents: d.Next()}
	if explicit {
		spec.Parents = nil
		for p := range strings.SplitSeq(parents, ",") {
			if p != "" {
				spec.Parents = append(spec.Parents, find(t, d, p))
			}
		}
	}
	n, err := dag.NewNode(spec)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Append(n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// find returns the node of a sketch by its name.
func find(t testing.TB, d dag.DAG, name string) *dag.Node {
	t.Helper()
	for n := range d.Nodes() {
		if n.Text() == name {
			return n
		}
	}
	t.Fatalf("no node %q in %s", name, names(slices.Collect(d.Nodes())))
	return nil
}

// names lists the nodes of a sketch. Those that the package makes itself are
// listed by their content.
func names(nodes []*dag.Node) string {
	var out []string
	for _, n := range nodes {
		if n == nil {
			out = append(out, "-")
		} else {
			out = append(out, n.Text())
		}
	}
	return strings.Join(out, " ")
}

// shape says everything about a DAG but its contents, so that two can be compared.
func shape(d dag.DAG) string {
	var out strings.Builder
	part := func(what string, nodes []*dag.Node) {
		out.WriteString(what)
		for _, n := range nodes {
			out.WriteString(" " + n.String())
		}
		out.WriteString("\n")
	}
	part("nodes", slices.Collect(d.Nodes()))
	part("heads", d.Heads())
	part("next", d.Next())
	return out.String()
}

func join(t testing.TB, base dag.DAG, lanes ...dag.DAG) dag.DAG {
	t.Helper()
	d, err := dag.Join(base, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantNames(t *testing.T, what string, nodes []*dag.Node, want string) {
	t.Helper()
	if got := names(nodes); got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func wantShape(t *testing.T, what string, got, want dag.DAG) {
	t.Helper()
	if g, w := shape(got), shape(want); g != w {
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

func stringRaw(s string) any { return json.RawMessage(s) }

func sprint(v ...any) string { return strings.TrimSuffix(fmt.Sprintln(v...), "\n") }
