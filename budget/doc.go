// Package budget accounts for the spending of a run: round trips, tokens, money and time. Accounts may be nested. A draw on an
// account also draws on all accounts above it, so a step can have its own limit within the run's limit:
//
//	ctx = budget.With(ctx, budget.New(budget.Limits{USD: new(2.0), Tokens: new(500_000)}))
//	result, err := stone.Run(ctx, pipeline, cfg)
//
// Calls and agents draw on the account in their context. They reserve the estimated cost of a request before it is sent; the
// reservation fails if the account cannot pay. They settle the actual cost afterwards; see [Draw]. [Fixed] returns the quote for
// a step with a fixed cost.
//
// A step that a journal records draws with a [Draw], so a recorded result is not paid for again when a run is resumed. The
// account of a resumed run starts with the amount that the run has spent in earlier processes; see [Account.Run].
//
// Reservations count as spent, so concurrent requests together exceed a limit by at most one estimate. A draw waits if only the
// open estimates of other draws prevent it, until these are settled. An attempt whose process died is charged an estimate based
// on the outputs of similar steps in the run; see [WithOutputs]. An account that limits money rejects models whose [Price] is
// unknown.
//
// # For packages that provide steps
//
// A package whose steps cost money estimates the cost of each step with a [Quote]. It attaches the cost of a failed attempt to
// the error with [Costly]; [CostOf] reads it. A [Bound] is the most that work can cost: [AtMost] an amount, or [Unbounded] for a
// reason.
//
// # Several runs
//
// A [Shared] budget applies to all runs that its [Rule] selects, for a [Period] such as a [Day] or a [Month]. Without a Period,
// it is never renewed. [Drawn] selects the budgets of a run, for journal.Options.Budgets, and [Observe] and [Earlier] tell an
// account how much earlier processes of a run have spent. A [Balance] is the state of a budget in a period.
package budget
