// Package budget keeps account of what a run spends: round trips, tokens, money
// and time. An account may stand under another one; what is drawn on it is drawn
// on all above it, so that a step can be given a cap inside that of its run:
//
//	ctx = budget.With(ctx, budget.New(budget.Limits{USD: 2, Tokens: 500_000}))
//	result, err := stone.Run(ctx, pipeline, cfg)
//
// Calls and agents draw on the account in their context.
package budget

import "time"

// Limits bound what may be spent. Zero fields bound nothing; negative ones are a
// mistake.
type Limits struct {
	Roundtrips int           `json:"max-roundtrips,omitempty"` // invocations of capabilities, turns of agents
	Tokens     int           `json:"max-tokens,omitempty"`     // in and out
	USD        float64       `json:"max-usd,omitempty"`
	Latency    time.Duration `json:"-"` // from when the account was opened; "latency-ms"
}
