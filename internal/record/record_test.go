package record_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/step"
)

// node makes a node with parents.
func node(t *testing.T, name string, parents ...*dag.Node) *dag.Node {
	t.Helper()
	n, err := dag.NewNode(dag.Spec{Type: "n", Content: name, Parents: parents})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func names(nodes []*dag.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(n.Text())
	}
	return b.String()
}

// Each ancestor is found once, after its parents, and in a time that does not grow with the number of ways to it.
func TestMissing(t *testing.T) {
	a := node(t, "a")
	b, c := node(t, "b", a), node(t, "c", a)
	d := node(t, "d", b, c, a)
	none := func(dag.ID) bool { return false }
	if got := names(record.Missing(d, none)); got != "abc" {
		t.Errorf("missing are %s, want abc", got)
	}
	if got := names(record.Missing(d, func(id dag.ID) bool { return id == a.ID() })); got != "bc" {
		t.Errorf("missing are %s, want bc", got)
	}
	all, err := record.Reached([]*dag.Node{b, d, c, d})
	if err != nil || all.Len() != 4 {
		t.Errorf("%d nodes are reached: %v, want 4", all.Len(), err)
	}
	top := a
	for i := range 60 {
		top = node(t, fmt.Sprint("top ", i), node(t, fmt.Sprint("left ", i), top), node(t, fmt.Sprint("right ", i), top))
	}
	if got := len(record.Missing(top, none)); got != 180 {
		t.Errorf("%d ancestors, want 180", got)
	}
}

func TestUsage(t *testing.T) {
	if got := record.Usage(step.Record{Content: []byte(`{"usage":{"usd":-1,"input-tokens":-5,"output-tokens":7}}`)}); got != (budget.Usage{OutputTokens: 7}) {
		t.Errorf("a negative usage is read as %+v", got)
	}
	for _, c := range []struct {
		declared budget.Amount
		err      error
		want     bool
	}{
		{budget.Amount{}, &budget.ExhaustedError{}, true}, // nothing was started
		{budget.Amount{}, errors.New("lost"), false},
		{budget.Amount{USD: 1}, errors.New("lost"), false},
	} {
		if used, known := record.Ended(c.declared, c.err); known != c.want || used != (budget.Usage{}) {
			t.Errorf("%+v, %v: used %+v, known %t, want %t", c.declared, c.err, used, known, c.want)
		}
	}
}
