// Package declared carries a step's maximum cost from the account that pays for it to the run's recorder. The amount's type is in
// package budget, which imports this package.
package declared

import "context"

type key struct{}

// With returns the context for a recorded step that may cost the amount. A zero amount declares no cost; use it for steps within
// such a step.
func With[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, key{}, amount)
}

type heldKey struct{}

// Hold returns the context for a step's work, for which the account has reserved the estimated amount.
func Hold[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, heldKey{}, amount)
}

// Held returns the amount that an account has reserved for the work in ctx, and reports whether there is one.
func Held[Amount any](ctx context.Context) (amount Amount, ok bool) {
	amount, ok = ctx.Value(heldKey{}).(Amount)
	return amount, ok
}

// In returns the declared maximum cost of the step started in ctx.
func In[Amount any](ctx context.Context) Amount {
	amount, _ := ctx.Value(key{}).(Amount)
	return amount
}

type claimKey struct{}

// Claim returns the context for a recorded step with the given quote. Budgets shared by several runs use the quote to decide
// whether the step may start.
func Claim[Quote any](ctx context.Context, q Quote) context.Context {
	return context.WithValue(ctx, claimKey{}, q)
}

// Claimed returns the quote of the step started in ctx, or the zero quote if there is none.
func Claimed[Quote any](ctx context.Context) Quote {
	q, _ := ctx.Value(claimKey{}).(Quote)
	return q
}
