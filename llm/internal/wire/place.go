package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/llm"
)

// limiterKey is the context key for the Limiter of models that were made without a Limiter.
type limiterKey struct{}

// limits returns the Limiter for a request.
func (c *Client) limits(ctx context.Context) *limit.Limiter {
	if shared, ok := ctx.Value(limiterKey{}).(*limit.Limiter); ok && !c.ownLimits {
		return shared
	}
	return c.limiter
}

// enter waits for a place in the limiter, and reports the reason for the wait to the consumer.
func (s *session) enter(ctx context.Context, tokens int) error {
	if transport.Batched(ctx) {
		return nil
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	place, err := s.client.limits(ctx).Enter(waiting, limit.Request{
		Tokens: tokens, Patience: max(s.client.retry.MaxWait, 1), Every: s.client.progress,
		Waiting: func(w limit.Wait) {
			if !s.tick(w.String()) {
				stop(errStopped)
			}
		},
	})
	switch {
	case err == nil && waiting.Err() != nil: // the context ended just as the request was admitted
		place.Leave(0)
		err = context.Cause(waiting)
	case err == nil:
		s.place = place
		return nil
	}
	switch {
	case errors.Is(err, errStopped):
		return err
	case ctx.Err() != nil:
		return s.ended(ctx)
	}
	return fmt.Errorf("llm: %w", err)
}

// leave returns the place to the limiter. It passes on the limits stated in the server's error, and the reported usage. The
// argument wait is the time until the next attempt, or 0 if there is none.
func (s *session) leave(err error, wait time.Duration) {
	if s.place == nil { // no limiter admitted the request
		return
	}
	if refused(err) {
		after := llm.RetryAfter(err)
		if after > 0 {
			// Retry-After says when to retry, whereas the other headers say when a limit is fully restored.
			s.quota = limit.Answer{}
		}
		s.quota.Refused, s.quota.Pause = true, cmp.Or(after, wait, s.client.retry.Wait)
		s.place.Heard(s.quota)
	}
	tokens := -1
	if u := s.reply.Usage; u.InputTokens != nil || u.OutputTokens != nil {
		used := u.Counted()
		tokens = used.Tokens()
		if s.client.freeCache {
			tokens -= used.CacheReadTokens
		}
	} else if _, failed := errors.AsType[*llm.HTTPError](err); failed {
		tokens = 0
	}
	s.place.Leave(tokens)
}
