// Package declared carries what a step may cost from the account that it draws on to the
// recorder of the run. The amount has a type of package budget, which imports
// this one.
package declared

import "context"

type key struct{}

// With returns the context for a recorded step that may cost the amount. The zero amount
// declares nothing; use it for the steps within the step.
func With[Amount any](ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, key{}, amount)
}

// In returns the amount that the step started in ctx may cost.
func In[Amount any](ctx context.Context) Amount {
	amount, _ := ctx.Value(key{}).(Amount)
	return amount
}
