package journaltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// wide returns a fan-out with a step in each lane. Bad determines which steps fail.
func wide(lanes int, bad func(i int) bool) stone.Ashlar {
	numbers := dag.ReaderFunc(func(dag.DAG) ([]int, error) {
		all := make([]int, lanes)
		for i := range all {
			all[i] = i
		}
		return all, nil
	})
	lane := stone.Func("work", item, draft, func(ctx context.Context, i int) (string, error) {
		return stone.Step(ctx, "ask", i, func(_ context.Context, i int) (string, error) {
			if bad(i) {
				return "", stone.Fail("unlucky", "%d", i)
			}
			return "ok", nil
		})
	})
	count := stone.Reduce(stone.New("count", final, func(context.Context, dag.DAG) (string, error) { return "ok", nil }, stone.Queries(dag.All(draft))))
	return stone.Seq("all", stone.Map("each", numbers, item, lane, stone.Lanes(16), stone.Quorum(lanes)), count)
}

// testOutlineLarge compares the stored outline of a large run with its steps: after the run has failed, in another process, while
// it is being retried, and when it is done.
func testOutlineLarge(t *testing.T, j tested) {
	const lanes = 1500
	bad := func(i int) bool { return i%100 == 7 }
	if _, err := run(t, j, wide(lanes, bad), journal.Options{}); !errors.Is(err, kind.LanesFailed) {
		t.Fatalf("lanes failed: %v", err)
	}
	sameOutline(t, j.Journal)
	other := j.open()
	sameOutline(t, other)
	var retried atomic.Int64
	all := make(chan struct{})
	_, err := run(t, other, wide(lanes, func(i int) bool {
		if retried.Add(1) == 15 { // at this point all failures have been discarded, and nothing else is running
			sameOutline(t, other)
			close(all)
		}
		<-all
		return i == 107
	}), journal.Options{})
	if err == nil || retried.Load() != 15 {
		t.Fatalf("%d lanes were retried: %v; want 15, of which one fails again", retried.Load(), err)
	}
	sameOutline(t, other)
	mustRun(t, other, wide(lanes, func(int) bool { return false }), journal.Options{})
	sameOutline(t, other)
	sameOutline(t, j.open())
	if err := other.Remove(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, other, wide(3, func(int) bool { return false }), journal.Options{})
	sameOutline(t, other)
}

// firstStart makes the starts of two branches comparable. An outline contains the start of a step's first attempt, while steps
// contain the start of the last attempt, which must not be earlier.
func firstStart(t *testing.T, steps, outline *journal.Branch) {
	t.Helper()
	if steps.Started.IsZero() != outline.Started.IsZero() || outline.Started.After(steps.Started) {
		t.Errorf("%s started at %s by the outline, and at %s by its steps", steps.Path, outline.Started, steps.Started)
	}
	outline.Started = steps.Started
	if steps.Step != nil && outline.Step != nil {
		if outline.Step.Started.After(steps.Step.Started) {
			t.Errorf("the step at %s started at %s by the outline, and at %s by the steps", steps.Path, outline.Step.Started, steps.Step.Started)
		}
		outline.Step.Started = steps.Step.Started
	}
}

// still clears the end of a branch that has become open again.
func still(b *journal.Branch) {
	if b.Open > 0 {
		b.Ended = time.Time{}
	}
}

// sameOutline compares the outline of a run with the outline built from its steps.
func sameOutline(t *testing.T, j journal.Journal) {
	t.Helper()
	steps, err := j.Steps(t.Context(), "run")
	must(t, err)
	want := journal.OutlineOf(steps)
	got, err := j.Outline(t.Context(), "run")
	must(t, err)
	for _, at := range []string{"", "all", "all/each", "all/each[7]", "all/each[107]/work", "all/each[1499]", "none"} {
		for _, p := range []journal.Page{{Limit: 30}, {From: "all/each[1000]", Limit: 30}, {Only: journal.BranchFailed}, {Only: journal.BranchOpen}, {Only: journal.BranchDone, Limit: 40}} {
			a, err := want.Level(t.Context(), at, p)
			must(t, err)
			b, err := got.Level(t.Context(), at, p)
			must(t, err)
			for _, l := range []*journal.Level{&a, &b} {
				for i := range l.Branches {
					still(&l.Branches[i])
				}
				still(&l.Sum)
			}
			firstStart(t, &a.Sum, &b.Sum)
			for i := range min(len(a.Branches), len(b.Branches)) {
				firstStart(t, &a.Branches[i], &b.Branches[i])
			}
			if diff := cmp.Diff(a, b, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("below %q, %+v (-steps +outline):\n%s", at, p, diff)
			}
		}
	}
	a, err := want.Places(t.Context())
	must(t, err)
	b, err := got.Places(t.Context())
	must(t, err)
	byPath := func(a, b journal.Place) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(a, byPath)
	slices.SortFunc(b, byPath)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the places (-steps +outline):\n%s", diff)
	}
}
