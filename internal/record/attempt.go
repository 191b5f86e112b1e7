package record

import (
	"context"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
)

type attemptKey struct{}

// Attempt returns the number of the attempt to which ctx belongs, 1 if there is none.
func Attempt(ctx context.Context) int {
	if n, ok := ctx.Value(attemptKey{}).(int); ok {
		return n
	}
	return 1
}

// WithAttempt returns the context of the n-th attempt at the work of a step.
func WithAttempt(ctx context.Context, n int) context.Context {
	if Declared(ctx) != (budget.Amount{}) {
		ctx = declared.With(ctx, budget.Amount{}) // the declaration of the outer step does not apply
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

// Anew returns how often the step of ctx was done anew on purpose, see journal.Options.Again. What a body asks of another
// service is a repetition of the same request only within one such time.
func Anew(ctx context.Context) int {
	n, _ := ctx.Value(anewKey{}).(int)
	return n
}

// WithAnew returns the context of a step that is done anew for the n-th time.
func WithAnew(ctx context.Context, n int) context.Context {
	if Anew(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, anewKey{}, n)
}
