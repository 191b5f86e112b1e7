package stone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

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
	memory, seen := new(journal.Memory), 0
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
