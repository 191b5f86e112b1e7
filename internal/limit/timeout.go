package limit

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is like context.WithTimeoutCause, but does not count the time during which a request with the context is waiting for
// a Limiter. The new context has no deadline of its own.
func WithTimeout(ctx context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	outer, _ := ctx.Value(clockKey{}).(*clock)
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{outer: outer, left: timeout, since: time.Now()}
	c.timer = time.AfterFunc(timeout, func() { cancel(cause) })
	return context.WithValue(ctx, clockKey{}, c), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.timer.Stop()
		cancel(context.Canceled)
	}
}

type clockKey struct{}

// A clock is a timeout that does not run while requests are waiting.
type clock struct {
	outer   *clock
	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // remaining time, measured from since
	since   time.Time
	waiting int
	over    bool
}

// pause pauses the timeouts of ctx. The returned function ends the pause.
func pause(ctx context.Context) (resume func()) {
	inner, _ := ctx.Value(clockKey{}).(*clock)
	for c := inner; c != nil; c = c.outer {
		c.wait(1)
	}
	return func() {
		for c := inner; c != nil; c = c.outer {
			c.wait(-1)
		}
	}
}

// wait adds more to the number of waiting requests.
func (c *clock) wait(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.waiting
	c.waiting += more
	switch {
	case c.over:
	case before == 0:
		if c.timer.Stop() {
			c.left = max(c.left-time.Since(c.since), 1)
		}
	case c.waiting == 0:
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}
