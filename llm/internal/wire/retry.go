package wire

import (
	"context"
	"errors"
	"time"

	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// follows waits as the outcome requires and reports whether another attempt follows. If not, the consumer has either stopped or
// received the error. It is a separate function to keep the stack of a waiting request small.
func (s *session) follows(ctx context.Context, o *outcome, attempt int) bool {
	switch {
	case errors.Is(o.err, errStopped):
		return false
	case !o.again:
		if attempt > 1 {
			o.err = &llm.RetriedError{Tried: attempt, Err: o.err}
		}
		s.yield(llm.Delta{Reply: s.reply}, o.err)
		return false
	}
	if o.path == "" && s.rest == nil && !s.yield(llm.Delta{Kind: llm.Restart, Err: o.err, Wait: o.wait, Reply: s.reply}, nil) {
		return false
	}
	if refused(o.err) {
		return true // the attempt waits for a place like other requests
	}
	err := s.sleep(ctx, o.wait)
	if err != nil && err != errStopped {
		s.yield(llm.Delta{Reply: s.reply}, err)
	}
	return err == nil
}

// outcome describes how an attempt ended.
type outcome struct {
	err   error
	path  string // where to request the missing part of the answer, or "" if none is missing
	wait  time.Duration
	again bool // whether another attempt follows after wait
}

// attempt makes the n-th attempt, occupying a place in the limiter.
func (s *session) attempt(ctx context.Context, q question, n int) (o outcome) {
	if err := s.enter(ctx, q.tokens); err != nil {
		return outcome{err: err}
	}
	defer func() { s.leave(o.err, o.wait) }()
	o.err = s.client.redact(ctx, s.run(ctx, q))
	if o.path = s.path(o.err); o.path != "" && (o.err == nil || n <= s.client.retry.Max) { // the model continues in the background
		o.wait, o.again = restEvery, true
		return o
	}
	if o.err == nil && o.path == "" && q.answer && n == 1 && s.client.retry.Max > 0 && rules.EndingOf(s.reply.StopReason) == rules.Whole {
		if o.err = s.reply.CheckContent(); o.err != nil { // reported to happen once in a few hundred turns, but not twice in a row
			o.wait, o.again = retryafter.Pause(n, s.client.retry.Wait, s.client.retry.MaxWait, 0), true
			return o
		}
	}
	o.path = ""
	o.wait, o.again = s.client.again(ctx, n, s, o.err)
	return o
}

// again reports whether to retry the request, and returns how long to wait before that.
func (c *Client) again(ctx context.Context, attempt int, s *session, err error) (time.Duration, bool) {
	if attempt > c.retry.Max || ctx.Err() != nil || !llm.Retryable(err) {
		return 0, false
	}
	if _, said := errors.AsType[*llm.ProviderError](err); said && s.rest != nil {
		return 0, false // the model failed in the background
	}
	if e, ok := errors.AsType[*llm.TimeoutError](err); ok && e.Phase != "connect" && !s.handed {
		return 0, false // the server may still be working on the request, and would bill for it
	}
	if wait := llm.RetryAfter(err); wait > 0 {
		return wait, wait <= c.retry.MaxWait
	}
	return retryafter.Pause(attempt, c.retry.Wait, c.retry.MaxWait, 0), true
}

// sleep waits before the next attempt.
func (s *session) sleep(ctx context.Context, wait time.Duration) error {
	progress := time.NewTicker(s.client.progress)
	defer progress.Stop()
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-progress.C:
			if !s.tick("") {
				return errStopped
			}
		case <-ctx.Done():
			return s.ended(ctx)
		}
	}
}
