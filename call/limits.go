package call

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/retryafter"
)

const (
	breakAfter = 5                // the number of consecutive failures after which a capability counts as down
	probeAfter = 10 * time.Second // the time after which one invocation tests whether the capability is available again
	grace      = 250 * time.Millisecond
)

// A breaker rejects invocations after breakAfter failures in a row. After probeAfter, it lets one invocation through at a time: a
// success closes it, a failure keeps it open for another probeAfter. The breaker of failsafe-go is not used, because it cannot
// return an unused permit. The loser of a race must return its permit, because otherwise the probe would never be repeated.
type breaker struct {
	mu      sync.Mutex
	failed  int // the number of failures in a row
	until   time.Time
	probing bool
	busy    time.Time // the end of the pause that the capability has requested
}

// maxBusy is the longest pause that a capability can request by declaring itself busy.
const maxBusy = time.Hour

// busyFor makes the breaker reject invocations for the duration d, which the capability has requested, but at most for maxBusy.
func (b *breaker) busyFor(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(min(d, maxBusy)); until.After(b.busy) {
		b.busy = until
	}
}

// down reports whether enter would return false.
func (b *breaker) down() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closedTo(time.Now)
}

func (b *breaker) closedTo(now func() time.Time) bool {
	return now().Before(b.busy) || b.failed >= breakAfter && (b.probing || now().Before(b.until))
}

func (b *breaker) row() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// enter reports whether an invocation may start. If so, the caller must call leave when
// it ends.
func (b *breaker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closedTo(time.Now) {
		return false
	}
	b.probing = b.failed >= breakAfter
	return true
}

// leave records how an invocation ended.
func (b *breaker) leave(end ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	switch end {
	case well:
		b.failed = 0
	case badly:
		if b.failed++; b.failed >= breakAfter {
			b.until = time.Now().Add(probeAfter)
		}
	}
}

type ending int

const (
	stopped ending = iota // the invocation was stopped, which says nothing about the capability
	well
	badly
)

// enter waits until the capability may be invoked. If the error is nil, the caller must call leave when the invocation ends.
func (e *entry) enter(ctx context.Context) (*limit.Place, error) {
	if !e.breaker.enter() {
		return nil, &Error{Type: reasons.Unavailable, Message: e.ID + " is not available: it failed repeatedly or asked for a pause"}
	}
	begin := time.Now()
	place, err := e.limiter.Enter(ctx, limit.Request{Waiting: func(w limit.Wait) {
		event.At(ctx).Send(event.Progress{Elapsed: time.Since(begin), Message: e.ID + ": " + w.String()})
	}})
	if late := (*limit.TooLateError)(nil); errors.As(err, &late) {
		err = &Error{Type: reasons.Unavailable, Message: e.ID + ": " + err.Error(), Cause: err}
	}
	if err != nil {
		e.breaker.leave(stopped)
		return nil, err
	}
	e.flights.Add(1)
	return place, nil
}

// leave records how an invocation ended.
func (e *entry) leave(place *limit.Place, end ending) {
	e.flights.Add(-1)
	place.Leave(0)
	e.breaker.leave(end)
}

// pause sleeps after the n-th attempt. If ctx is done before, it returns ctx's cause.
func pause(ctx context.Context, n int, asked time.Duration) error {
	return retryafter.Sleep(ctx, retryafter.Pause(n, firstBackoff, maxBackoff, asked))
}
