// Package budget keeps account of what a run spends: round trips, tokens, money
// and time. An account may stand under another one; what is drawn on it is drawn
// on all above it, so that a step can be given a cap inside that of its run:
//
//	ctx = budget.With(ctx, budget.New(budget.Limits{USD: 2, Tokens: 500_000}))
//	result, err := stone.Run(ctx, pipeline, cfg)
//
// Calls and agents draw on the account in their context: they reserve what a request
// may cost before it is sent, which fails if the account cannot pay it, and settle what
// it did cost after it. See [Draw]. What has a price of its own needs no estimate:
//
//	draw, err := budget.From(ctx).Reserve(budget.Amount{Roundtrips: 1, USD: 0.01})
//	if err != nil {
//		return err // *budget.ExhaustedError
//	}
//	…
//	draw.Settle(budget.Amount{Tokens: in + out, USD: price})
//
// A step that a journal records draws with a [Draw]: what is recorded is not paid
// again when a run is resumed. The account of such a run is charged with what the
// run has cost before, in whatever process, see [Account.Run].
//
// What is reserved counts as spent, so requests at the same time cannot overdraw
// together: the account exceeds a limit by one estimate at most. An account that bounds
// money refuses models whose [Price] is not known.
package budget
