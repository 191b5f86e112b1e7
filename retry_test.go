package stone_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/kind"
)

// wishes is an error that says how it wants to be retried.
type wishes struct {
	after    time.Duration
	final    bool
	attempts int
}

func (w wishes) Error() string             { return "no luck" }
func (w wishes) RetryAfter() time.Duration { return w.after }
func (w wishes) Retryable() bool           { return !w.final }
func (w wishes) Attempts() int             { return w.attempts }

func TestRetryListens(t *testing.T) {
	for name, tt := range map[string]struct {
		err    wishes
		policy stone.Retry
		calls  int
		took   time.Duration
	}{
		"waits as long as it is asked to": {wishes{after: 2 * time.Minute}, stone.Retry{Attempts: 2, Backoff: time.Second}, 2, 2 * time.Minute},
		"does not wait for a day":         {wishes{after: 24 * time.Hour}, stone.Retry{Attempts: 2}, 1, 0},
		"stops at what is final":          {wishes{final: true}, stone.Retry{Attempts: 3}, 1, 0},
		"counts what was tried below":     {wishes{attempts: 4}, stone.Retry{Attempts: 3}, 1, 0},
		"goes on as far as it goes":       {wishes{attempts: 4}, stone.Retry{Attempts: 10}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, start := 0, time.Now()
				_, err := stone.Run(t.Context(), stone.Func0("a", word, func(context.Context) (string, error) {
					calls++
					return "", fmt.Errorf("body: %w", tt.err)
				}, tt.policy), stone.Config{})
				if took := time.Since(start); !errors.Is(err, tt.err) || calls != tt.calls || took != tt.took {
					t.Errorf("%d calls in %v, %v; want %d in %v", calls, took, err, tt.calls, tt.took)
				}
			})
		})
	}
}

// Lanes that failed at the same moment are not retried at the same moment.
func TestRetryScatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		moments := map[time.Time]int{}
		lane := stone.Func0("lane", word, func(ctx context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			moments[time.Now()]++
			return "", errBoom
		}, stone.Retry{Attempts: 2, Backoff: time.Second})
		lanes := make([]stone.FanPart, 50)
		for i := range lanes {
			lanes[i] = lane
		}
		_, err := stone.Run(t.Context(), stone.Seq("s", stone.Parallel("p", lanes...), stone.Reduce(say("end", "x"))), stone.Config{})
		wantKind(t, err, kind.LanesFailed)
		if len(moments) < 45 {
			t.Errorf("50 lanes came back at %d moments", len(moments)-1)
		}
	})
}

// A resumed run does not sleep after replayed attempts, and treats their errors as
// before.
func TestRetryReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memdb.New(t)
		calls, final, stop := 0, false, true
		leaf := stone.Func0("a", word, func(ctx context.Context) (string, error) {
			v, err := stone.Step(ctx, "s", nil, func(context.Context, any) (string, error) {
				if calls++; calls < 3 {
					return "", fmt.Errorf("step: %w", wishes{after: time.Minute, final: final})
				}
				if stop {
					return "", kind.Waiting
				}
				return "x", nil
			})
			return v, err
		}, stone.Retry{Attempts: 5, Backoff: time.Second})
		cfg := stone.Config{Recorder: memory, RunID: "r"}
		if _, err := stone.Run(t.Context(), leaf, cfg); !errors.Is(err, kind.Waiting) || calls != 3 {
			t.Fatalf("%d calls, %v", calls, err)
		}
		start := time.Now()
		stop = false
		if _, err := stone.Run(t.Context(), leaf, cfg); err != nil || calls != 4 || time.Since(start) != 0 {
			t.Errorf("resumed: %d calls in %v, %v; want one more, at once", calls, time.Since(start), err)
		}

		calls, final, cfg.RunID = 0, true, "other"
		again := stone.Func0("b", word, func(ctx context.Context) (string, error) {
			_, err := stone.Step(ctx, "s", nil, func(context.Context, any) (string, error) { calls++; return "", wishes{final: true} })
			if calls == 1 && err != nil && stop {
				return "", kind.Waiting
			}
			return "", err
		}, stone.Retry{Attempts: 5})
		stop = true
		_, err := stone.Run(t.Context(), again, cfg)
		if !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		stop = false
		if _, err = stone.Run(t.Context(), again, cfg); err == nil || calls != 1 {
			t.Errorf("resumed after a final failure: %d calls, %v; want no more", calls, err)
		}
	})
}

// A body with a Timeout that listens is waited for.
func TestTimeoutWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		cancel, returns time.Duration
		err             error
		kind            kind.Kind
		took            time.Duration
	}{
		"a result just after the timeout is kept":      {time.Hour, time.Minute + time.Millisecond, nil, "", time.Minute + time.Millisecond},
		"an error just after the timeout is a timeout": {time.Hour, time.Minute + time.Millisecond, errBoom, kind.Timeout, time.Minute + time.Millisecond},
		"a result after the grace is dropped":          {time.Hour, time.Minute + 2*time.Second, nil, kind.Timeout, time.Minute + time.Second},
		"a cancelled body is waited for":               {time.Second, 31 * time.Second, nil, "", 31 * time.Second},
		"but no longer than it could have worked":      {time.Second, 2 * time.Minute, nil, kind.Canceled, time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(tt.cancel, cancel)
				start := time.Now()
				result, err := stone.Run(ctx, stone.Func0("a", word, func(ctx context.Context) (string, error) {
					<-ctx.Done()
					time.Sleep(tt.returns - time.Since(start))
					return "x", tt.err
				}, stone.Timeout(time.Minute)), stone.Config{})
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if tt.kind != "" {
					wantKind(t, err, tt.kind)
				} else if err != nil || result.Node.Text() != "x" {
					t.Errorf("Run = %v, %v; want the result", result.Node, err)
				}
				time.Sleep(time.Hour) // the body that was left behind ends
			})
		})
	}
}

// The attempt that is made after a timeout does not overlap the one before, as
// long as that listens.
func TestTimeoutDoesNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
			if running++; running > 1 {
				t.Error("two attempts at once")
			}
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			running--
			return "", ctx.Err()
		}, stone.Timeout(time.Second), stone.Retry{Attempts: 3}), stone.Config{})
		wantKind(t, err, kind.Timeout)
	})
}

// A body can run a pipeline of its own on the DAG that it was given.
func TestNestedRun(t *testing.T) {
	inner := stone.Func("inner", word, number, func(_ context.Context, w string) (int, error) { return len(w), nil })
	outer := stone.New("outer", number, func(ctx context.Context, d dag.DAG) (int, error) {
		res, err := stone.Run(ctx, inner, stone.Config{Input: d})
		if err != nil {
			return 0, err
		}
		return number.From(res.DAG)
	}, stone.Queries(word))
	res, err := stone.Run(t.Context(), stone.Seq("s", say("w", "abc"), outer), stone.Config{})
	if n, _ := number.From(res.DAG); err != nil || n != 3 {
		t.Errorf("Run = %d, %v; want 3", n, err)
	}
}
