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
	if Attempt(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, n)
}

// Declared returns the amount that the step recorded in ctx may cost.
func Declared(ctx context.Context) budget.Amount { return declared.In[budget.Amount](ctx) }
