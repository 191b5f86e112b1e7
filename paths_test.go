package stone

import (
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
)

// steps makes leaves of the names.
func steps(names ...string) []Ashlar {
	var out []Ashlar
	for _, name := range names {
		out = append(out, first(name, draftType))
	}
	return out
}

func fork(name string, children ...Ashlar) Ashlar {
	var branches []Branch
	for _, c := range children {
		branches = append(branches, Case(c.Name(), c))
	}
	return Match(name, Lens("text"), branches...)
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
	e := first("e", draftType)
	rule := func(walk Walk) Ashlar { return scopedOver("s", walk) }
	for _, tt := range []struct {
		name  string
		p     Ashlar
		names string
		paths string
	}{
		{"leaf", e, "e", "e"},
		{"seq", Seq("p", ab...), "p a b", "a b"},
		{"loop", Loop("l", Seq("p", ab...), nil, 2), "l p a b", "a b"},
		{"match", Seq("p", e, fork("m", ab...)), "p e m a b", "e a | e b"},
		{"two matches", Seq("p", fork("m", ab...), fork("n", cd...)), "p m a b n c d", "a c | a d | b c | b d"},
		{"parallel", Seq("p", Parallel("f", Parts(ab)...), Reduce(e)), "p f a b e", "a e | b e"},
		{"map", Seq("p", Map("f", dag.Derive(ticketType, notesOf), itemType, ab[0]), Reduce(e)), "p f a e", "a e"},
		{"reduce of a sequence", Reduce(Seq("p", ab...)), "p a b", "a b"},
		{"rescue", Seq("p", Rescue("r", Seq("q", ab...), fork("m", cd...)), e), "p r q a b m c d e", "a b e | a b c e | a b d e"},
		{"scoped in order", scopedOver("s", Walk{}.InOrder(ab...)), "s a b", "a b"},
		{"scoped of all kinds", rule(Walk{}.OneOf(ab...).Perhaps(cd[0]).Reads().Repeat(cd[1])), "s a b c d", "a c d | a d | b c d | b d"},
		{"scoped in lanes", Seq("p", rule(Walk{}.Lanes(append(ab, cd...)...)), Reduce(e)), "p s a b c d e", "a e | b e | c e | d e"},
		{"one ashlar twice", Seq("p", e, e), "p e e", "e e"},
		{"children of a leaf are no steps", e.with(Children(Walk{}.InOrder(ab...))), "e a b", "e"},
		{"nothing", Seq("p"), "p", ""},
		{"no branch", Seq("p", e, fork("m")), "p e m", ""},
		{"no name", Seq("", e, Ashlar{}), "e", "e ?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.names, strings.Join(Names(tt.p), " ")); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.paths, join(Paths(tt.p))); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
			if got, want := CountPaths(tt.p).Int64(), int64(len(slices.Collect(Paths(tt.p)))); got != want {
				t.Errorf("%d paths counted, %d listed", got, want)
			}
		})
	}
}

// TestManyPaths counts what nobody can list, and lists the first of it.
func TestManyPaths(t *testing.T) {
	var forks []Ashlar
	for i := range 200 {
		forks = append(forks, fork(fmt.Sprint("m", i), steps("a", "b")...))
	}
	want := new(big.Int).Lsh(big.NewInt(1), 200)
	if got := CountPaths(Seq("p", forks...)); got.Cmp(want) != 0 {
		t.Errorf("%v paths, want %v", got, want)
	}
	listed := 0
	for path := range Paths(Seq("p", forks...)) {
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
		tower = Seq(fmt.Sprint("s", i), tower, tower)
	}
	if got, want := CountPaths(tower), new(big.Int).Lsh(big.NewInt(1), 1<<10); got.Cmp(want) != 0 {
		t.Errorf("%v paths, want 2^1024", got)
	}
}

// TestPathsAreCounted holds CountPaths to Paths, on trees of all forms.
func TestPathsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := (&grower{T: t, witness: &witness{}}).tree()
		counted := CountPaths(p)
		if counted.Cmp(big.NewInt(10_000)) > 0 {
			t.Skip("too many paths")
		}
		if listed := len(slices.Collect(Paths(p))); int64(listed) != counted.Int64() {
			t.Fatalf("%v paths counted, %d listed\n%s", counted, listed, sketch(p))
		}
	})
}

func TestQuestions(t *testing.T) {
	answer := dag.NewType[Answer]("answer")
	sure, which := Ask("sure", dag.Nothing, answer, noText), Ask("which", dag.Nothing, answer, noText, Choices("left", "right"))
	p := Seq("p", which, Rescue("r", sure, fork("m", sure, which)), first("e", draftType).with(Children(Walk{}.InOrder(Ask("inside", dag.Nothing, answer, noText)))))
	want := []ask.Question{{Name: "which", Choices: []string{"left", "right"}}, {Name: "sure"}, {Name: "inside"}}
	if diff := cmp.Diff(want, Questions(p)); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}
