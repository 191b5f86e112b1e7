package llm

import (
	"context"

	"github.com/stonelayer/stone/internal/limit"
)

// Limits restricts the requests to a server. Zero means unlimited.
type Limits struct {
	RequestsPerMinute int // the number of requests started in any minute
	TokensPerMinute   int // the number of tokens of input and answers per minute
	Concurrency       int // the number of requests at the same time
}

// A Limiter paces the requests of the models that have it in their Config. Requests wait in arrival order, in two queues: one for
// [Interactive] contexts, and one for all others. While requests are waiting in both queues, three of every four places go to
// interactive requests. A Limiter also obeys the pauses and the rates that the server reports. It applies to one process: if N
// processes use the same key, give each of them 1/N of the limits. It is safe for concurrent use.
type Limiter = limit.Limiter

// NewLimiter returns a Limiter with the limits.
func NewLimiter(l Limits) *Limiter { return limit.New(limit.Limits(l)) }

// Interactive marks a context for requests whose answers a person is waiting for. Such requests take precedence over others.
func Interactive(ctx context.Context) context.Context {
	r := limit.RankOf(ctx)
	r.Interactive = true
	return limit.Ranked(ctx, r)
}
