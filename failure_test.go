package stone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// TestReasonDoesNotRepeatKind says the kind and the place of a failure once, however the error
// of the body is made.
func TestReasonDoesNotRepeatKind(t *testing.T) {
	spent := &budget.ExhaustedError{Limit: "max-usd"}
	placed := &stone.Failure{Kind: "tired", Reason: "no more", Path: "inner"}
	out := dag.NewType[string]("out")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"an error with a kind":          {spent, "budget/exhausted at leaf: nothing may be spent within max-usd"},
		"failed with that kind":         {stone.Fail(budget.Kind, "%w", spent), "budget/exhausted at leaf: nothing may be spent within max-usd"},
		"failed twice":                  {stone.Fail("tired", "%w", stone.Fail("tired", "%w", stone.Fail("tired", "no more"))), "tired at leaf: no more"},
		"wrapped":                       {fmt.Errorf("%w", stone.Fail("tired", "no more")), "tired at leaf: no more"},
		"with a place":                  {placed, "tired at inner: no more"},
		"several errors":                {errors.Join(errors.New("no roof"), errors.New("no walls:\n\tno stone\r\n")), "error at leaf: no roof; no walls: no stone"},
		"failed with several":           {stone.Fail("tired", "%w", errors.Join(errors.New("a"), errors.New("b"))), "tired at leaf: a; b"},
		"wrapped with a place":          {fmt.Errorf("%w", placed), "tired at inner: no more"},
		"failed with another kind":      {stone.Fail("other", "%w", placed), "other at leaf: tired at inner: no more"},
		"a kind that is only mentioned": {fmt.Errorf("at work: %w", stone.Fail("tired", "no more")), "tired at leaf: at work: tired: no more"},
	} {
		t.Run(name, func(t *testing.T) {
			db := memdb.New(t)
			leaf := stone.Func0("leaf", out, func(context.Context) (string, error) { return "", test.err })
			_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
			if err == nil || err.Error() != test.want {
				t.Errorf("the run fails with %v, want %s", err, test.want)
			}
			info, findErr := db.Find(t.Context(), "r")
			if findErr != nil {
				t.Fatal(findErr)
			}
			if failure, ok := errors.AsType[*stone.Failure](err); ok && info.Failure.Reason != failure.Reason {
				t.Errorf("the journal has the reason %q, want %q", info.Failure.Reason, failure.Reason)
			}
		})
	}
}

// errors.Is asks the failure of a run for its kind, and the failures that led to it.
func TestKindOfAnError(t *testing.T) {
	const own kind.Kind = "own"
	boom := func(err error) stone.Ashlar {
		return stone.Func0("boom", word, func(context.Context) (string, error) { return "", err })
	}
	for name, tt := range map[string]struct {
		err  error
		is   []kind.Kind
		isNo []kind.Kind
	}{
		"no kind":      {errors.New("x"), []kind.Kind{kind.Error}, []kind.Kind{own, kind.Timeout}},
		"its own":      {stone.Fail(own, "x"), []kind.Kind{own}, []kind.Kind{kind.Error}},
		"a deadline":   {context.DeadlineExceeded, []kind.Kind{kind.Timeout}, []kind.Kind{kind.Error}},
		"one in one":   {stone.Fail("outer", "x: %w", stone.Fail(own, "y")), []kind.Kind{"outer", own}, []kind.Kind{kind.Error}},
		"wrapped":      {fmt.Errorf("x: %w", stone.Fail(own, "y")), []kind.Kind{own}, []kind.Kind{kind.Timeout}},
		"empty string": {errors.New("x"), nil, []kind.Kind{""}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stone.Run(t.Context(), stone.Seq("s", boom(tt.err)), stone.Config{})
			for _, k := range tt.is {
				if !errors.Is(err, k) {
					t.Errorf("%v is not %s", err, k)
				}
			}
			for _, k := range tt.isNo {
				if errors.Is(err, k) {
					t.Errorf("%v is %s", err, k)
				}
			}
		})
	}
}

// A replayed error has its kind still, also for the body that does the step.
func TestKindOfAReplayedError(t *testing.T) {
	memory, seen := memdb.New(t), 0
	p := stone.Func0("body", word, func(ctx context.Context) (string, error) {
		_, err := stone.Step(ctx, "fetch", "x", func(context.Context, string) (string, error) { return "", stone.Fail("own", "no") })
		if errors.Is(err, kind.Kind("own")) {
			seen++
		}
		if seen == 1 {
			panic("before it is recorded")
		}
		return "done", nil
	}, stone.Retry{Attempts: 2})
	if _, err := stone.Run(t.Context(), p, stone.Config{Recorder: memory, RunID: "r"}); err != nil || seen != 2 {
		t.Errorf("got %v, and saw the kind %d times, want 2", err, seen)
	}
}
