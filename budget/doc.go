// Package budget keeps account of what a run spends: round trips, tokens, money
// and time. An account may stand under another one; what is drawn on it is drawn
// on all above it, so that a step can be given a cap inside that of its run:
//
//	ctx = budget.With(ctx, budget.New(budget.Limits{USD: 2, Tokens: 500_000}))
//	result, err := stone.Run(ctx, pipeline, cfg)
//
// Calls and agents draw on the account in their context: they reserve what an
// invocation is declared to cost before it is made, which fails if that would
// overdraw any account up the chain, and settle what it did cost after it:
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
// What is reserved counts as spent, so invocations at the same time can not
// overdraw together. What cannot be known before, such as tokens, may end beyond
// its limit; then nothing more is given.
package budget
