package stone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

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
