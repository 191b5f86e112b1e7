package llm

import (
	"context"

	"github.com/stonelayer/stone/internal/limit"
)

// Limits are limits on the requests to a server. For each field, zero means unlimited.
type Limits struct {
	RequestsPerMinute int // maximum number of requests started in any minute
	TokensPerMinute   int // maximum number of input and output tokens per minute
	Concurrency       int // maximum number of concurrent requests
}

// A Limiter delays the requests of the models that have it in their Config, so that they stay within its limits. Requests wait in
// arrival order, in two queues: one for [Interactive] contexts, and one for all others. While requests are waiting in both queues,
// three of every four places go to interactive requests. A Limiter also obeys the pauses and the rates that the server reports. It
// applies to one process: if N processes use the same key, give each of them 1/N of the limits. It is safe for concurrent use.
type Limiter = limit.Limiter

// NewLimiter returns a Limiter with the given limits.
func NewLimiter(l Limits) *Limiter { return limit.New(limit.Limits(l)) }

// Interactive returns a context for requests whose answers a person is waiting for. A Limiter gives them precedence over other
// requests.
func Interactive(ctx context.Context) context.Context {
	r := limit.RankOf(ctx)
	r.Interactive = true
	return limit.Ranked(ctx, r)
}
