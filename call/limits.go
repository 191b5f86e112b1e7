package call

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	breakAfter = 5                // consecutive failures after which a capability is down
	probeAfter = 10 * time.Second // time after which one invocation may probe whether it is available again
	grace      = 250 * time.Millisecond
)

// A breaker rejects invocations after breakAfter failures in a row. After probeAfter it
// lets one invocation through at a time: a success closes it, a failure keeps it open for
// another probeAfter. The breaker of failsafe-go cannot return an unused permit. The
// loser of a race must do so, or its probe would never be repeated.
type breaker struct {
	mu      sync.Mutex
	failed  int // in a row
	until   time.Time
	probing bool
	busy    time.Time // until then the capability has asked for no requests
}

// maxBusy bounds how long a capability can declare itself busy.
const maxBusy = time.Hour

// busyFor rejects invocations for d, as the capability asked, but at most for maxBusy.
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

// leave notes how an invocation ended.
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
	stopped ending = iota // no evidence about the capability
	well
	badly
)

// A window limits the starts in any minute. The token bucket of x/time/rate would allow
// nearly twice as many in its first minute.
type window struct {
	mu     sync.Mutex
	starts []time.Time // of the latest invocations; next is the index of the oldest
	next   int
}

func newWindow(perMinute int) *window { return &window{starts: make([]time.Time, perMinute)} }

// wait returns when the next invocation may start. An invocation that is cancelled while
// it waits has still used its place.
func (w *window) wait(ctx context.Context) error {
	w.mu.Lock()
	now := time.Now()
	at := w.starts[w.next].Add(time.Minute)
	if at.Before(now) {
		at = now
	}
	if end, ok := ctx.Deadline(); ok && at.After(end) {
		w.mu.Unlock()
		return &Error{Type: Unavailable, Message: fmt.Sprintf("its limit of %d invocations a minute is used up until after the deadline", len(w.starts))}
	}
	w.starts[w.next] = at
	w.next = (w.next + 1) % len(w.starts)
	w.mu.Unlock()
	return pause(ctx, at.Sub(now))
}

// enter waits until the capability may be invoked. After a nil error the caller must call
// leave.
func (e *entry) enter(ctx context.Context) error {
	if !e.breaker.enter() {
		return &Error{Type: Unavailable, Message: e.ID + " is not available: it failed repeatedly or asked for a pause"}
	}
	if e.slots != nil {
		select {
		case e.slots <- struct{}{}:
		case <-ctx.Done():
			e.breaker.leave(stopped)
			return context.Cause(ctx)
		}
	}
	e.flights.Add(1)
	if e.rate != nil {
		if err := e.rate.wait(ctx); err != nil {
			e.leave(stopped)
			return err
		}
	}
	return nil
}

// leave notes how an invocation ended.
func (e *entry) leave(end ending) {
	e.flights.Add(-1)
	if e.slots != nil {
		<-e.slots
	}
	e.breaker.leave(end)
}

// pause sleeps, and returns early with the cause when ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
