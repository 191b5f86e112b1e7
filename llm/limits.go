package llm

import (
	"context"

	"github.com/stonelayer/stone/internal/limit"
)

// Limits restricts the requests to a server. Zero means unlimited.
type Limits struct {
	RequestsPerMinute int // requests started in any minute
	TokensPerMinute   int // tokens of input and answers, per minute
	Concurrency       int // requests at the same time
}

// A Limiter paces the requests of the models that have it in their Config. They wait in arrival order, in two queues: one for
// [Interactive] contexts, and one for the others. While both queues have waiting requests, three of four places go to the first
// one. A Limiter also obeys the pauses and the rates that the server reports. It applies to one process: if N processes use the
// same key, give each of them 1/N of the limits. It is safe for concurrent use.
type Limiter = limit.Limiter

// NewLimiter returns a Limiter with the limits.
func NewLimiter(l Limits) *Limiter { return limit.New(limit.Limits(l)) }

// Interactive marks a context whose requests a person is waiting for: they go before others.
func Interactive(ctx context.Context) context.Context {
	r := limit.RankOf(ctx)
	r.Interactive = true
	return limit.Ranked(ctx, r)
}
