package stone_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A body names its original children; their replacements are run and walked, also after
// a second replacement.
func TestReplaceBelowBodies(t *testing.T) {
	text := func(name, content string) stone.Ashlar {
		return stone.Func0(name, word, func(context.Context) (string, error) { return content, nil })
	}
	inner := text("inner", "first")
	walk := stone.Walk{}.InOrder(inner)
	run := func(ctx context.Context, d dag.DAG) (string, error) {
		return stone.In(ctx).RunChild(inner, d).Latest().Text(), nil
	}
	p := stone.Seq("p",
		stone.Scoped("scoped", walk, func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			return stone.In(ctx).RunChild(inner, d), nil
		}),
		stone.New("leaf", word, run, stone.Children(walk), stone.Queries(dag.Latest)),
	)
	for _, want := range []string{"first", "second", "third"} {
		if want != "first" {
			p = p.Replace(func(a stone.Ashlar) (stone.Ashlar, bool) { return text("inner", want), a.Name() == "inner" })
		}
		if findings := stone.Validate(p, stone.Given{}); len(findings.Errors()) > 0 {
			t.Fatalf("%s: %v", want, findings)
		}
		res, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		all, err := dag.All(dag.NewType[string]("word")).From(res.DAG)
		if err != nil || len(all) != 2 || all[0] != want || all[1] != want {
			t.Errorf("got %q, %v; want %s twice", all, err, want)
		}
	}
}

// An ashlar that is used in several places is replaced by one ashlar.
func TestReplaceRemembers(t *testing.T) {
	judge := say("judge", "x")
	fix := stone.Seq("fix", judge)
	p := stone.Seq("p", stone.Parallel("vote", judge, judge, fix, fix), stone.Reduce(say("end", "y")))
	asked := 0
	q := p.Replace(func(a stone.Ashlar) (stone.Ashlar, bool) {
		if a.Name() != "judge" {
			return a, false
		}
		asked++
		return say("judge", "z"), true
	})
	if findings := stone.Validate(q, stone.Given{}); len(findings.Errors()) > 0 || asked != 1 {
		t.Errorf("asked for %d replacements, %v", asked, findings)
	}
}

// A node that a body built itself gets the time of the run.
func TestLeafIsStamped(t *testing.T) {
	leaf := stone.Leaf("leaf", word, func(_ context.Context, d dag.DAG) (*dag.Node, error) {
		return dag.NewNode(dag.Spec{Type: "word", Content: "x", Parents: d.Next()})
	})
	res, err := stone.Run(t.Context(), leaf, stone.Config{})
	if err != nil || res.Node.Time().IsZero() {
		t.Errorf("time %v, error %v", res.Node.Time(), err)
	}
}
