package tree_test

import (
	"context"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/tree"
)

var (
	text  = dag.NewType[string]("text")
	texts = dag.NewType[[]string]("texts")
)

func leaf(name string, opts ...stone.LeafOption) stone.Ashlar {
	return stone.Func0(name, text, func(context.Context) (string, error) { return name, nil }, opts...)
}

func scoped(walk stone.Walk) stone.Ashlar {
	return stone.Scoped("s", walk, func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, nil })
}

// steps makes leaves of the names.
func steps(names ...string) []stone.Ashlar {
	var out []stone.Ashlar
	for _, name := range names {
		out = append(out, leaf(name))
	}
	return out
}

func fork(name string, children ...stone.Ashlar) stone.Ashlar {
	var branches []stone.Branch
	for _, c := range children {
		branches = append(branches, stone.Case(c.Name(), c))
	}
	return stone.Match(name, stone.Lens("text"), branches...)
}

// join writes paths as "a b | a c".
func join(paths iter.Seq[[]string]) string {
	var out []string
	for p := range paths {
		out = append(out, strings.Join(p, " "))
	}
	return strings.Join(out, " | ")
}

func TestPaths(t *testing.T) {
	ab, cd := steps("a", "b"), steps("c", "d")
	e := leaf("e")
	for _, tt := range []struct {
		name  string
		p     stone.Ashlar
		names string
		paths string
	}{
		{"leaf", e, "e", "e"},
		{"seq", stone.Seq("p", ab...), "p a b", "a b"},
		{"loop", stone.Loop("l", stone.Seq("p", ab...), nil, 2), "l p a b", "a b"},
		{"match", stone.Seq("p", e, fork("m", ab...)), "p e m a b", "e a | e b"},
		{"two matches", stone.Seq("p", fork("m", ab...), fork("n", cd...)), "p m a b n c d", "a c | a d | b c | b d"},
		{"parallel", stone.Seq("p", stone.Parallel("f", ab[0], ab[1]), stone.Reduce(e)), "p f a b e", "a e | b e"},
		{"map", stone.Seq("p", stone.Map("f", texts, text, ab[0]), stone.Reduce(e)), "p f a e", "a e"},
		{"reduce of a sequence", stone.Reduce(stone.Seq("p", ab...)), "p a b", "a b"},
		{"rescue", stone.Seq("p", stone.Rescue("r", stone.Seq("q", ab...), fork("m", cd...)), e), "p r q a b m c d e", "a b e | a b c e | a b d e"},
		{"scoped in order", scoped(stone.Walk{}.InOrder(ab...)), "s a b", "a b"},
		{"scoped of all kinds", scoped(stone.Walk{}.OneOf(ab...).Perhaps(cd[0]).Reads().Repeat(cd[1])), "s a b c d", "a c d | a d | b c d | b d"},
		{"scoped in lanes", stone.Seq("p", scoped(stone.Walk{}.Lanes(append(ab, cd...)...)), stone.Reduce(e)), "p s a b c d e", "a e | b e | c e | d e"},
		{"one ashlar twice", stone.Seq("p", e, e), "p e e", "e e"},
		{"children of a leaf are no steps", leaf("e", stone.Children(stone.Walk{}.InOrder(ab...))), "e a b", "e"},
		{"nothing", stone.Seq("p"), "p", ""},
		{"no branch", stone.Seq("p", e, fork("m")), "p e m", ""},
		{"no name", stone.Seq("", e, stone.Ashlar{}), "e", "e ?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.names, strings.Join(tt.p.Names(), " ")); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.paths, join(tree.Paths(tt.p))); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
			if got, want := tree.CountPaths(tt.p).Int64(), int64(len(slices.Collect(tree.Paths(tt.p)))); got != want {
				t.Errorf("%d paths counted, %d listed", got, want)
			}
		})
	}
}

// TestManyPaths counts more paths than a program can list, and lists the first ones.
func TestManyPaths(t *testing.T) {
	var forks []stone.Ashlar
	for i := range 200 {
		forks = append(forks, fork(fmt.Sprint("m", i), steps("a", "b")...))
	}
	want := new(big.Int).Lsh(big.NewInt(1), 200)
	if got := tree.CountPaths(stone.Seq("p", forks...)); got.Cmp(want) != 0 {
		t.Errorf("%v paths, want %v", got, want)
	}
	listed := 0
	for path := range tree.Paths(stone.Seq("p", forks...)) {
		if len(path) != len(forks) {
			t.Fatalf("a path of %d steps, want %d", len(path), len(forks))
		}
		if listed++; listed == 1000 {
			break
		}
	}
	// A part that is used twice at each of many levels is counted once.
	tower := fork("top", steps("a", "b")...)
	for i := range 10 {
		tower = stone.Seq(fmt.Sprint("s", i), tower, tower)
	}
	if got, want := tree.CountPaths(tower), new(big.Int).Lsh(big.NewInt(1), 1<<10); got.Cmp(want) != 0 {
		t.Errorf("%v paths, want 2^1024", got)
	}
}

// TestPathsAreCounted compares CountPaths with Paths, on pipelines of all forms.
func TestPathsAreCounted(t *testing.T) {
	for seed := range uint64(200) {
		p := grown(seed)
		counted := tree.CountPaths(p)
		if counted.Cmp(big.NewInt(10_000)) > 0 {
			continue
		}
		if listed := len(slices.Collect(tree.Paths(p))); int64(listed) != counted.Int64() {
			t.Fatalf("seed %d: %v paths counted, %d listed", seed, counted, listed)
		}
	}
}

func TestNothing(t *testing.T) {
	if n := tree.CountPaths(stone.Ashlar{}); len(tree.Questions(stone.Ashlar{})) != 0 || n.Int64() != 1 {
		t.Errorf("the zero stone.Ashlar has questions, or %v paths", n)
	}
}

func TestQuestions(t *testing.T) {
	answer := dag.NewType[stone.Answer]("answer")
	sure, which := stone.Ask("sure", dag.Nothing, answer, func(struct{}) string { return "" }), stone.Ask("which", dag.Nothing, answer, func(struct{}) string { return "" }, stone.Choices("left", "right"))
	p := stone.Seq("p", which, stone.Rescue("r", sure, fork("m", sure, which)), leaf("e", stone.Children(stone.Walk{}.InOrder(stone.Ask("inside", dag.Nothing, answer, func(struct{}) string { return "" })))))
	want := []ask.Question{{Name: "which", Choices: []string{"left", "right"}}, {Name: "sure"}, {Name: "inside"}}
	if diff := cmp.Diff(want, tree.Questions(p)); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}
