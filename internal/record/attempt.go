package record

import (
	"context"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
)

type attemptKey struct{}

// Attempt returns the number of the attempt to which ctx belongs, or 1 if ctx does not belong to an attempt.
func Attempt(ctx context.Context) int {
	if n, ok := ctx.Value(attemptKey{}).(int); ok {
		return n
	}
	return 1
}

// WithAttempt returns the context for the n-th attempt at the work of a step.
func WithAttempt(ctx context.Context, n int) context.Context {
	if Declared(ctx) != (budget.Amount{}) {
		ctx = declared.With(ctx, budget.Amount{}) // the outer step's declaration does not apply
	}
	if is, _ := Child(ctx); is {
		ctx = context.WithValue(ctx, childKey{}, nil)
	}
	if Attempt(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, n)
}

// Declared returns the amount that the step recorded in ctx may cost.
func Declared(ctx context.Context) budget.Amount { return declared.In[budget.Amount](ctx) }

type anewKey struct{}

// Anew returns how many times the current step has been repeated on purpose (see journal.Options.Again). Each repetition sends new
// requests to other services.
func Anew(ctx context.Context) int {
	n, _ := ctx.Value(anewKey{}).(int)
	return n
}

// WithAnew returns the context for the n-th repetition of a step.
func WithAnew(ctx context.Context, n int) context.Context {
	if Anew(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, anewKey{}, n)
}

type beginsKey struct{}

// WithBegin returns a context for the methods Acquire and Begin. It tells the journal that the caller will begin a new run
// immediately. Both methods then need only one write, which need not be durable before the next write.
func WithBegin(ctx context.Context) context.Context { return context.WithValue(ctx, beginsKey{}, true) }

// Begins reports whether ctx comes from WithBegin.
func Begins(ctx context.Context) bool { return ctx.Value(beginsKey{}) != nil }

type childKey struct{}

type child struct{ goesOn bool }

// WithChild returns the context for a step that waits for a child, a run elsewhere. If goesOn is true, an earlier process's
// attempt continues in this process, so it is not counted again. The step's cost counts for its own run, but not for the spending
// of several runs, which already includes the child.
func WithChild(ctx context.Context, goesOn bool) context.Context {
	return context.WithValue(ctx, childKey{}, child{goesOn})
}

// Child reports whether ctx comes from WithChild, and returns WithChild's goesOn.
func Child(ctx context.Context) (is, goesOn bool) {
	c, is := ctx.Value(childKey{}).(child)
	return is, c.goesOn
}

type lookupKey struct{}

// WithLookup returns a context with which Do only looks up a record and does no work. If there is no record, Do returns the zero
// Record.
func WithLookup(ctx context.Context) context.Context {
	return context.WithValue(ctx, lookupKey{}, true)
}

// Lookup reports whether ctx comes from WithLookup.
func Lookup(ctx context.Context) bool { return ctx.Value(lookupKey{}) != nil }
