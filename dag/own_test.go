package dag_test

import (
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
)

func TestOwn(t *testing.T) {
	node := func(content any, beside string) *dag.Node {
		meta := map[string]string{}
		if beside != "" {
			meta[terms.Beside] = beside
		}
		n, err := dag.NewNode(dag.Spec{Type: "t", Content: content, Meta: meta})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, test := range []struct {
		content   any
		beside    string
		own, text string
	}{
		{map[string]any{"b": 1, "a": "x", "talk": []string{"id-1"}}, "talk", `{"a":"x","b":1}`, `{"a":"x","b":1}`},
		{map[string]any{"text": "x", "talk": 1}, "talk", `{"text":"x"}`, "x"},
		{map[string]any{"talk": 1}, "", `{"talk":1}`, `{"talk":1}`},
		{map[string]any{"big": 9007199254740993, "talk": 1, "more": 2}, "talk,more", `{"big":9007199254740993}`, `{"big":9007199254740993}`},
		{"plain", "talk", `"plain"`, "plain"},
	} {
		n := node(test.content, test.beside)
		if n.Own() != test.own || n.Text() != test.text {
			t.Errorf("%v without %q: %s and %s, want %s and %s", test.content, test.beside, n.Own(), n.Text(), test.own, test.text)
		}
	}
	if got := (*dag.Node)(nil).Own(); got != "" {
		t.Errorf("no node has %q", got)
	}
	// What is beside an answer does not keep another run from having it again.
	read := func(n *dag.Node) dag.ID {
		d, err := dag.DAG{}.Append(n)
		if err != nil {
			t.Fatal(err)
		}
		return dag.NewType[any]("t").Query().Digest(d, true)
	}
	a := node(map[string]any{"a": 1, "talk": "id-1"}, "talk")
	b := node(map[string]any{"a": 1, "talk": "id-2"}, "talk")
	c := node(map[string]any{"a": 2, "talk": "id-1"}, "talk")
	if a.ID() == b.ID() || read(a) != read(b) || read(a) == read(c) {
		t.Error("two answers are compared with what is beside them, or not at all")
	}
}
