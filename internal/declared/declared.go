// Package declared passes a step's maximum cost, in a context, from the account that pays for the step to the run's recorder. The
// amount's type is in package budget, which imports this package.
package declared

import "context"

type key struct{}

// With returns a copy of ctx, to be passed to a recorded step, which declares that the step may cost the given amount. The zero
// amount declares no cost; use it for steps inside a step whose cost is already declared.
func With[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, key{}, amount)
}

type heldKey struct{}

// Hold returns a copy of ctx in which to do a step's work. It says that the account has reserved the given amount, the estimated
// cost, for the work.
func Hold[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, heldKey{}, amount)
}

// Held returns the amount that an account has reserved for the work in ctx. It returns false if no account has reserved any.
func Held[Amount any](ctx context.Context) (amount Amount, ok bool) {
	amount, ok = ctx.Value(heldKey{}).(Amount)
	return amount, ok
}

// In returns the maximum cost that With has declared in ctx.
func In[Amount any](ctx context.Context) Amount {
	amount, _ := ctx.Value(key{}).(Amount)
	return amount
}

type claimKey struct{}

// Claim returns a copy of ctx, to be passed to a recorded step, with the step's quote. Budgets shared by several runs use the
// quote to decide whether the step may start.
func Claim[Quote any](ctx context.Context, q Quote) context.Context {
	return context.WithValue(ctx, claimKey{}, q)
}

// Claimed returns the quote that Claim has added to ctx, or the zero quote if there is none.
func Claimed[Quote any](ctx context.Context) Quote {
	q, _ := ctx.Value(claimKey{}).(Quote)
	return q
}
