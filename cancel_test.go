package stone_test

import (
	"context"
	"errors"
	"fmt"
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
	t.Run("with a cause that the body returns", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := stone.Run(ctx, stone.Func0("a", word, func(ctx context.Context) (string, error) {
			cancel(stone.Fail(kind.Canceled, "Ctrl-C"))
			return "", fmt.Errorf("asked: %w", context.Cause(ctx))
		}), stone.Config{})
		if f := wantKind(t, err, kind.Canceled); f.Reason != "Ctrl-C" {
			t.Errorf("Run returned %v, want the cause once", err)
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

// The context of a body behaves like one of package context, though it becomes
// one only when the body asks for it.

type contextKey struct{}

// within runs body as a leaf of its own in a run that is not cancelled.
func within(t *testing.T, body func(ctx context.Context, d dag.DAG) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), contextKey{}, "v"), time.Hour)
	defer cancel()
	_, err := stone.Run(ctx, stone.New("leaf", word, func(ctx context.Context, d dag.DAG) (string, error) {
		return "x", body(ctx, d)
	}), stone.Config{})
	return err
}

func TestContextOfBody(t *testing.T) {
	err := within(t, func(ctx context.Context, _ dag.DAG) error {
		if ctx.Err() != nil || context.Cause(ctx) != nil {
			t.Errorf("a fresh context is done: %v, %v", ctx.Err(), context.Cause(ctx))
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the deadline of the run is not there")
		}
		for range 2 { // before and after Done
			if ctx.Value(contextKey{}) != "v" || ctx.Value("other") != nil {
				t.Error("the values of the context of the run are not there")
			}
			if first := ctx.Done(); ctx.Done() != first {
				t.Error("Done returns another channel each time")
			}
		}
		child, cancel := context.WithCancel(ctx)
		cancel()
		<-child.Done()
		if ctx.Err() != nil {
			t.Error("a child that was cancelled cancelled its parent")
		}
		free := context.WithoutCancel(ctx)
		if stone.In(free).Path() != "leaf" || stone.In(child).Path() != "leaf" {
			t.Error("contexts made from that of the body do not lead to it")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// stricter makes a child that only the end of ctx cancels in time.
func stricter(ctx context.Context) context.Context {
	child, cancel := context.WithTimeout(ctx, 24*time.Hour)
	context.AfterFunc(ctx, cancel)
	return child
}

func TestContextEndsWithBody(t *testing.T) {
	for _, early := range []bool{false, true} {
		var kept, child context.Context
		after := make(chan struct{})
		if err := within(t, func(ctx context.Context, _ dag.DAG) error {
			kept = ctx
			if early {
				child = stricter(ctx)
				context.AfterFunc(ctx, func() { close(after) })
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !early {
			child = stricter(kept)
			context.AfterFunc(kept, func() { close(after) })
		}
		<-kept.Done()
		<-child.Done()
		<-after
		if kept.Err() != context.Canceled || child.Err() != context.Canceled || context.Cause(kept) != context.Canceled {
			t.Errorf("after the body: %v, child %v, cause %v; want Canceled", kept.Err(), child.Err(), context.Cause(kept))
		}
		if kept.Value(contextKey{}) != "v" || stone.In(kept).Path() != "leaf" {
			t.Error("the values are gone after the body")
		}
		if got, err := stone.Step(kept, "late", nil, func(ctx context.Context, _ any) (string, error) { return fmt.Sprint(ctx.Err()), nil }); got != "context canceled" || err != nil {
			t.Errorf("a step after the body has the context error %v, %v; want Canceled", got, err)
		}
	}
}

func TestContextOfUndeclaredRead(t *testing.T) {
	check := func(ctx context.Context, d dag.DAG, read func()) {
		read()
		<-ctx.Done()
		var refused *dag.ReadError
		if cause := context.Cause(ctx); ctx.Err() != context.Canceled || !errors.As(cause, &refused) || refused.Type != "number" {
			t.Errorf("context error %v, cause %v; want Canceled because of the read", ctx.Err(), cause)
		}
	}
	for name, body := range map[string]func(context.Context, dag.DAG){
		"before Done": func(ctx context.Context, d dag.DAG) {
			check(ctx, d, func() { _, _ = number.From(d) })
		},
		"after Done": func(ctx context.Context, d dag.DAG) {
			_ = ctx.Done()
			check(ctx, d, func() { _, _ = d.All("number"); _, _ = d.Nearest("word") })
		},
		"in a child": func(ctx context.Context, d dag.DAG) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			check(child, d, func() { _, _ = number.From(d) })
		},
		"only Err": func(ctx context.Context, d dag.DAG) {
			_, _ = number.From(d)
			if ctx.Err() == nil || !errors.Is(context.Cause(ctx), dag.ErrUndeclared) {
				t.Errorf("context error %v, cause %v", ctx.Err(), context.Cause(ctx))
			}
		},
		"at the same time": func(ctx context.Context, d dag.DAG) {
			go func() { _, _ = number.From(d) }()
			check(ctx, d, func() {})
		},
	} {
		err := within(t, func(ctx context.Context, d dag.DAG) error {
			body(ctx, d)
			return errBoom
		})
		t.Log(name)
		wantKind(t, err, kind.UndeclaredQuery)
		if !errors.Is(err, dag.ErrUndeclared) {
			t.Errorf("%s: %v, want ErrUndeclared", name, err)
		}
	}
}

// The run's end reaches a body through whatever is made from its context.
func TestCancelReachesBody(t *testing.T) {
	for name, derive := range map[string]func(context.Context) context.Context{
		"itself":  func(ctx context.Context) context.Context { return ctx },
		"value":   func(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey{}, "w") },
		"timeout": stricter,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errBoom)
			defer cancel()
			child := stone.Func0("leaf", word, func(ctx context.Context) (string, error) {
				ctx = derive(ctx)
				_, err := wait(ctx)
				if context.Cause(ctx) != errBoom {
					t.Errorf("%s: cause %v, want that of the run", name, context.Cause(ctx))
				}
				return "", err
			})
			_, err := stone.Run(ctx, stone.Scoped("c", stone.Walk{}.InOrder(child), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
				return stone.In(derive(ctx)).RunChild(child, d), nil
			}), stone.Config{})
			wantKind(t, err, kind.Timeout)
		})
	}
}

// A scoped body may give a child less time than it has itself.
func TestScopedBodyCancelsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := stone.Func0("slow", word, wait), say("quick", "x")
		result, err := stone.Run(t.Context(), stone.Scoped("c", stone.Walk{}.InOrder(slow, quick), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			out := stone.In(short).RunChild(slow, d)
			if f, ok := out.Cause().(*stone.Failure); !ok || f.Kind != kind.Timeout {
				t.Errorf("the child ended with %v, want a timeout", out.Cause())
			}
			return stone.In(ctx).RunChild(quick, d), nil
		}), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wantShow(t, result.DAG, `word "x"`)
	})
}
