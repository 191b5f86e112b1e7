// Package declared carries a step's maximum cost from the account that pays for it to the run's recorder. The amount's type is in
// package budget, which imports this package.
package declared

import "context"

type key struct{}

// With returns the context for a recorded step that may cost the amount. The zero amount
// declares nothing; use it for the steps within the step.
func With[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, key{}, amount)
}

type heldKey struct{}

// Hold returns the context for the work of a step for which the account holds an estimated amount.
func Hold[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, heldKey{}, amount)
}

// Held returns the amount that an account holds for the work in ctx, and whether it holds any.
func Held[Amount any](ctx context.Context) (amount Amount, ok bool) {
	amount, ok = ctx.Value(heldKey{}).(Amount)
	return amount, ok
}

// In returns the maximum cost of the step started in ctx.
func In[Amount any](ctx context.Context) Amount {
	amount, _ := ctx.Value(key{}).(Amount)
	return amount
}

type claimKey struct{}

// Claim returns the context for a recorded step with its quote. Budgets over several runs use the quote to admit the step.
func Claim[Quote any](ctx context.Context, q Quote) context.Context {
	return context.WithValue(ctx, claimKey{}, q)
}

// Claimed returns the quote of the step started in ctx, or zero if there is none.
func Claimed[Quote any](ctx context.Context) Quote {
	q, _ := ctx.Value(claimKey{}).(Quote)
	return q
}
