package sqlite

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

func TestSteps(t *testing.T) {
	db := open(t, "", Options{})
	cfg := stone.Config{RunID: "r", Recorder: db, Now: stopped}
	calls := 0
	one := stone.New("one", draft, func(ctx context.Context, _ dag.DAG) (string, error) {
		calls++
		if _, err := stone.Step(ctx, "fail", nil, func(context.Context, any) (int, error) { return 0, stone.Fail("empty", "no answer") }); err == nil {
			return "", errors.New("the step did not fail")
		}
		if calls == 1 {
			return "", kind.Waiting
		}
		return "done", nil
	})
	if steps, err := db.Steps(t.Context(), "r"); steps != nil || err != nil {
		t.Errorf("before the run: %v, %v", steps, err)
	}
	first := journal.Step{Path: "one", Kind: "leaf", Name: "one", Attempts: 1}
	second := journal.Step{Path: "one/step:fail", Kind: "step", Name: "fail", Attempts: 1, Recorded: true, Time: stopped().UTC(), Failure: "empty", Reason: "no answer"}
	for _, paid := range []int{1, 1} {
		result, err := stone.Run(t.Context(), one, cfg)
		if calls == 2 {
			if err != nil {
				t.Fatal(err)
			}
			first.Attempts, first.Recorded, first.Time, first.Node = 2, true, stopped().UTC(), result.Node.ID()
			first.Type = "draft"
		}
		steps, err := db.Steps(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		for i := range steps {
			steps[i].Time = steps[i].Time.UTC()
			steps[i].Started, steps[i].Ended, steps[i].Sum = time.Time{}, time.Time{}, dag.ID{}
		}
		if len(steps) == 2 {
			second.Path = steps[1].Path // tested in the root package
		}
		if diff := cmp.Diff([]journal.Step{first, second}, steps); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", calls, diff)
		}
		if got := steps[0].PossiblyPaid(); got != paid {
			t.Errorf("run %d: %d attempts are possibly paid, want %d", calls, got, paid)
		}
	}
}

// The file holds every ancestor of the nodes of leaves, also those that no leaf made: the
// input and the markers of a fan-out.
func TestDAG(t *testing.T) {
	db := open(t, "", Options{})
	input, err := plan.Append(dag.DAG{}, []int{3, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	pipeline := stone.Seq("all",
		stone.Map("fan", plan, item,
			stone.Func("lane", item, draft, func(_ context.Context, i int) (string, error) {
				if i == 1 {
					return "", stone.Fail("odd", "not this one")
				}
				return "kept", nil
			})),
		stone.Reduce(stone.Func("join", dag.All(draft), round, func(_ context.Context, all []string) (int, error) { return len(all), nil })))
	result, err := stone.Run(t.Context(), pipeline, stone.Config{RunID: "r", Recorder: db, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.DAG(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(t, got), lines(t, result.DAG); !slices.Equal(got, want) {
		t.Errorf("the file has\n%s\nwant\n%s", got, want)
	}
	if d, err := db.DAG(t.Context(), "none"); d.Len() > 0 || err != nil {
		t.Errorf("an unknown run: %d nodes, %v", d.Len(), err)
	}
}

// lines returns the lines of dag.Write, sorted.
func lines(t *testing.T, d dag.DAG) []string {
	t.Helper()
	var text bytes.Buffer
	if err := dag.Write(&text, d); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(text.String()))
	slices.Sort(lines)
	return lines
}

func TestResumeAcrossOpen(t *testing.T) {
	file := memdir.New(t) + "/stone.db"
	calls := 0
	say := stone.Func0("say", draft, func(context.Context) (string, error) { calls++; return "hello", nil })
	var ids []dag.ID
	for range 2 {
		db := open(t, file, Options{Lease: time.Hour})
		result, err := stone.Run(t.Context(), say, stone.Config{RunID: "r", Recorder: db})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, result.Node.ID())
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 || ids[0] != ids[1] {
		t.Errorf("%d calls and the nodes %v, want one call and one node", calls, ids)
	}
}
