package journal

import (
	"context"

	"github.com/stonelayer/stone/budget"
)

// Attempt returns how often the work of the step to which ctx belongs was started,
// this time included: more than 1 says that it may have been paid for already. It
// is 1 outside of a run with a journal. What a body calls can be told that it is
// the same call by stone.Body.RunID and Path together, which do not change.
func Attempt(ctx context.Context) int {
	if n, ok := ctx.Value(attemptKey{}).(int); ok {
		return n
	}
	return 1
}

type attemptKey struct{}

// WithAttempt returns the context that a Journal gives to the work of a step that
// is started for the n-th time.
func WithAttempt(ctx context.Context, n int) context.Context {
	if budget.Declared(ctx) != (budget.Amount{}) {
		ctx = budget.Declare(ctx, budget.Amount{}) // it was of this step alone
	}
	if Attempt(ctx) == n {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, n)
}
