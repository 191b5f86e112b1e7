package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// A lane that was lost is done again alone, with what reads it; each place then has one current step, and
// the run differs from a twin that lost nothing in no place.
func TestLaneAgain(t *testing.T) {
	var (
		list, item   = dag.NewType[[]string]("list"), dag.NewType[string]("item")
		made, joined = dag.NewType[string]("made"), dag.NewType[string]("joined")
		memory       = memdb.New(t)
		calls        []string
		down         = true
	)
	p := stone.Seq("p",
		stone.Func0("given", list, func(context.Context) ([]string, error) { return []string{"a", "b", "c"}, nil }),
		stone.Map("each", list, item, stone.Func("make", item, made, func(_ context.Context, s string) (string, error) {
			if calls = append(calls, s); s == "b" && down {
				return "", errors.New("503")
			}
			return s + s, nil
		}), stone.Quorum(1), stone.Lanes(1)),
		stone.Reduce(stone.Func("join", dag.Lanes2(item, made), joined, func(_ context.Context, rows []dag.Row2[string, string]) (string, error) {
			return fmt.Sprint(rows), nil
		})))
	run := func(id string, again ...string) string {
		t.Helper()
		calls = nil
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: id, Recorder: journal.Keep(memory, journal.Options{Again: again})})
		if err != nil {
			t.Fatal(err)
		}
		return result.Node.Text()
	}
	if got := run("r"); got != "[{a aa} {c cc}]" {
		t.Fatalf("got %s, want lane b to be lost", got)
	}
	down = false
	if got := run("r", "p/each[1]"); got != "[{a aa} {b bb} {c cc}]" || !slices.Equal(calls, []string{"b"}) {
		t.Errorf("got %s after %v; want lane b alone to be done again", got, calls)
	}
	steps, err := memory.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, s := range journal.Current(steps) {
		if seen[s.Path+" "+s.Kind]++; s.Failure != "" {
			t.Errorf("the failure of %s is current", s.Path)
		}
	}
	if len(steps) <= len(journal.Current(steps)) || seen["p/each[1]/make leaf"] != 1 || seen["p/join leaf"] != 1 {
		t.Errorf("of %d steps %v are current; want one of each place", len(steps), seen)
	}
	whole, err := journal.OutlineOf(steps).Level(t.Context(), "p", journal.Page{})
	if err != nil || whole.Sum.Failed != 0 || whole.Sum.Open != 0 || whole.Counts[journal.BranchDone] != whole.All {
		t.Errorf("the outline counts what was superseded: %+v, %v", whole, err)
	}
	run("twin")
	if differences, err := journal.Diff(t.Context(), memory, "r", "twin"); err != nil || len(differences) > 0 {
		t.Errorf("it differs from a run that lost nothing: %+v, %v", differences, err)
	}
	if got := run("r", "p/each[1]"); got != "[{a aa} {b bb} {c cc}]" || !slices.Equal(calls, []string{"b"}) {
		t.Errorf("a second time: got %s after %v", got, calls)
	}
}
