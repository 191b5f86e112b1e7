// Package budget accounts for the spending of a run: round trips, tokens, money and time.
// An account may be under another one. A draw on it is a draw on all accounts above it,
// so that a step can have a cap within that of its run:
//
//	ctx = budget.With(ctx, budget.New(budget.Limits{USD: 2, Tokens: 500_000}))
//	result, err := stone.Run(ctx, pipeline, cfg)
//
// Calls and agents draw on the account in their context. They reserve the estimated cost
// of a request before it is sent, which fails if the account cannot pay it. They settle
// the actual cost afterwards. See [Draw]. A fixed cost needs no estimate:
//
//	draw, err := budget.From(ctx).Reserve(budget.Amount{Roundtrips: 1, USD: 0.01})
//	if err != nil {
//		return err // *budget.ExhaustedError
//	}
//	…
//	draw.Settle(budget.Amount{Tokens: in + out, USD: price})
//
// A step that a journal records draws with a [Draw]: a recorded result is not paid again
// when a run is resumed. The account of such a run is charged with the cost of the run so
// far, in whatever process, see [Account.Run].
//
// Reservations count as spent, so concurrent requests cannot overdraw together: the
// account exceeds a limit by one estimate at most. An account that limits money rejects
// models whose [Price] is not known.
package budget
