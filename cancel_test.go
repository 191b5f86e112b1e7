package stone_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

func TestCancel(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		result, err := stone.Run(ctx, say("a", "x"), stone.Config{})
		wantKind(t, err, kind.Canceled)
		wantShow(t, result.DAG, `failure {"kind":"canceled","reason":"context canceled"}`)
	})
	t.Run("with a cause of its own", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := stone.Run(ctx, stone.Func0("a", word, func(ctx context.Context) (string, error) {
			cancel(errBoom)
			<-ctx.Done()
			return "", errors.New("signal: killed")
		}), stone.Config{})
		f := wantKind(t, err, kind.Canceled)
		if f.Reason != "boom: signal: killed" || !errors.Is(err, errBoom) || !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want it to say why", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := stone.Run(ctx, stone.Func0("a", word, wait), stone.Config{})
			wantKind(t, err, kind.Timeout)
		})
	})
	t.Run("ignored by the body", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		result, err := stone.Run(ctx, stone.Seq("s", stone.Func0("a", word, func(context.Context) (string, error) {
			cancel()
			return "late", nil
		}), say("b", "y")), stone.Config{})
		wantKind(t, err, kind.Canceled)
		wantShow(t, result.DAG, `word "late"`, `failure {"kind":"canceled","reason":"context canceled"}`)
	})
	t.Run("is not rescued", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := stone.Run(ctx, stone.Rescue("r", stone.Func0("a", word, func(ctx context.Context) (string, error) {
			cancel()
			return "", ctx.Err()
		}), stone.Func0("heal", word, func(context.Context) (string, error) {
			t.Error("the cancellation was rescued")
			return "", nil
		})), stone.Config{})
		wantKind(t, err, kind.Canceled)
	})
	t.Run("starts no scoped body", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := stone.Run(ctx, stone.Scoped("c", stone.Walk{}, func(_ context.Context, d dag.DAG) (dag.DAG, error) {
			t.Error("the body ran")
			return d, nil
		}), stone.Config{})
		wantKind(t, err, kind.Canceled)
	})
}

// wait is a body that waits until it is cancelled.
func wait(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestTimeout(t *testing.T) {
	t.Run("body that listens", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			result, err := stone.Run(t.Context(), stone.Rescue("r", stone.Func0("a", word, wait, stone.Timeout(time.Second)), say("heal", "x")), stone.Config{})
			if err != nil {
				t.Fatal(err)
			}
			wantShow(t, result.DAG, `failure {"kind":"timeout","reason":"took longer than 1s"}`, `word "x"`)
		})
	})
	t.Run("body that never listens", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			defer close(free)
			_, err := stone.Run(t.Context(), stone.Func0("a", word, func(context.Context) (string, error) {
				<-free
				return "", nil
			}, stone.Timeout(time.Second)), stone.Config{})
			wantKind(t, err, kind.Timeout)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run returned %v, want it to be a DeadlineExceeded", err)
			}
		})
	})
	t.Run("undeclared query at the last moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := stone.Run(t.Context(), stone.New("a", word, func(ctx context.Context, d dag.DAG) (string, error) {
				_, _ = number.From(d)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), dag.ErrUndeclared) {
					t.Errorf("the cause is %v, want ErrUndeclared", context.Cause(ctx))
				}
				return "", ctx.Err()
			}, stone.Timeout(time.Second)), stone.Config{})
			wantKind(t, err, kind.UndeclaredQuery)
		})
	})
	t.Run("goexit", func(t *testing.T) {
		_, err := stone.Run(t.Context(), stone.Func0("a", word, func(context.Context) (string, error) {
			runtime.Goexit()
			return "", nil
		}, stone.Timeout(time.Minute)), stone.Config{})
		wantKind(t, err, kind.Panic)
	})
}

func TestRetry(t *testing.T) {
	tests := []struct {
		name   string
		policy stone.Retry
		err    error
		calls  int
		took   time.Duration
	}{
		{"all attempts", stone.Retry{Attempts: 4, Backoff: time.Second}, errBoom, 4, 7 * time.Second},
		{"backoff is bounded", stone.Retry{Attempts: 70, Backoff: time.Second}, errBoom, 70, (1+2+4+8+16)*time.Second + 64*30*time.Second},
		{"no policy to speak of", stone.Retry{}, errBoom, 1, 0},
		{"kind that is meant", stone.Retry{Attempts: 2, Kinds: []kind.Kind{"own"}}, stone.Fail("own", "x"), 2, 0},
		{"kind that is not meant", stone.Retry{Attempts: 2, Kinds: []kind.Kind{"own"}}, errBoom, 1, 0},
		{"never again", stone.Retry{Attempts: 2}, context.Canceled, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				start := time.Now()
				_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
					calls++
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					if ctx.Err() != nil {
						t.Errorf("attempt %d starts with a context that is done", calls)
					}
					return "", tt.err
				}, tt.policy), stone.Config{})
				if !errors.Is(err, tt.err) || calls != tt.calls || time.Since(start) > tt.took || time.Since(start) < tt.took/2 {
					t.Errorf("%d calls in %v: %v; want %d in at most %v, and half of that", calls, time.Since(start), err, tt.calls, tt.took)
				}
			})
		})
	}
	t.Run("succeeds and gives each attempt its address", func(t *testing.T) {
		var paths []string
		result, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
			if paths = append(paths, stone.In(ctx).Path()); len(paths) < 3 {
				return "", errBoom
			}
			return "x", nil
		}, stone.Retry{Attempts: 5}), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wantShow(t, result.DAG, `word "x"`)
		if diff := cmp.Diff([]string{"a", "a~2", "a~3"}, paths); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("timeout of each attempt, cancelled in the pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, errBoom)
			defer cancel()
			_, err := stone.Run(ctx, stone.Func0("a", word, wait, stone.Timeout(time.Second),
				stone.Retry{Attempts: 100, Backoff: time.Hour}), stone.Config{})
			wantKind(t, err, kind.Timeout)
			if !errors.Is(err, errBoom) {
				t.Errorf("Run returned %v, want the cause", err)
			}
		})
	})
}
