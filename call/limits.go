package call

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	breakAfter = 5                // failures in a row after which a capability is down
	probeAfter = 10 * time.Second // after which one invocation may find out whether it is up again
	grace      = 250 * time.Millisecond
)

// A breaker holds a capability down after breakAfter failures in a row. After
// probeAfter it lets one invocation through at a time, of which a success closes
// it and a failure keeps it open as long again. That of failsafe-go has no way to
// give a permit back unused, which the loser of a race must: its probe would
// never be made again.
type breaker struct {
	mu      sync.Mutex
	failed  int // in a row
	until   time.Time
	probing bool
	busy    time.Time // until then it wants no requests, as it said itself
}

// maxBusy bounds for how long a capability can say that it is busy.
const maxBusy = time.Hour

// busyFor holds the capability down for the time that it asked for.
func (b *breaker) busyFor(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(min(d, maxBusy)); until.After(b.busy) {
		b.busy = until
	}
}

// down reports whether enter would refuse.
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

// enter reports whether an invocation may begin; it must leave then.
func (b *breaker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closedTo(time.Now) {
		return false
	}
	b.probing = b.failed >= breakAfter
	return true
}

// leave notes how an invocation ended: well, badly, or not by itself.
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
	stopped ending = iota // it says nothing about the capability
	well
	badly
)

// A window lets so many begin in any minute. The bucket of x/time/rate would let
// nearly twice as many begin in its first.
type window struct {
	mu     sync.Mutex
	starts []time.Time // of the last ones; next is the oldest
	next   int
}

func newWindow(perMinute int) *window { return &window{starts: make([]time.Time, perMinute)} }

// wait returns when the next one may begin. One that is cancelled meanwhile has
// used its place all the same.
func (w *window) wait(ctx context.Context) error {
	w.mu.Lock()
	now := time.Now()
	at := w.starts[w.next].Add(time.Minute)
	if at.Before(now) {
		at = now
	}
	if end, ok := ctx.Deadline(); ok && at.After(end) {
		w.mu.Unlock()
		return &Error{Type: Unavailable, Message: fmt.Sprintf("its %d places a minute are taken until the deadline has passed", len(w.starts))}
	}
	w.starts[w.next] = at
	w.next = (w.next + 1) % len(w.starts)
	w.mu.Unlock()
	return pause(ctx, at.Sub(now))
}

// enter waits until the capability may be asked. Who has entered must leave.
func (e *entry) enter(ctx context.Context) error {
	if !e.breaker.enter() {
		return &Error{Type: Unavailable, Message: e.ID + " is down after failing again and again"}
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
