package journal

import (
	"context"

	"github.com/stonelayer/stone/budget"
)

// Attempt returns how often the work of the step to which ctx belongs was started, this
// time included. Above 1 it may have been billed already. Outside of a run with a journal
// it is 1. stone.Body.RunID and Path stay the same in every attempt: a service that the
// body calls can recognise a repeated call by them.
func Attempt(ctx context.Context) int {
	if n, ok := ctx.Value(attemptKey{}).(int); ok {
		return n
	}
	return 1
}

type attemptKey struct{}

// WithAttempt returns the context that a Journal passes to the n-th attempt of a step.
func WithAttempt(ctx context.Context, n int) context.Context {
	if budget.Declared(ctx) != (budget.Amount{}) {
		ctx = budget.Declare(ctx, budget.Amount{}) // the declaration of the outer step does not apply
	}
	if Attempt(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, n)
}
