package limit

import (
	"fmt"
	"slices"
	"time"
)

// inRow is the maximum number of interactive requests that start in a row while other requests are waiting.
const inRow = 3

// next returns the waiter that may start next, or nil if no request is waiting.
func (l *Limiter) next() *waiter {
	if len(l.queues[1]) > 0 && (len(l.queues[0]) == 0 || l.row < inRow) {
		return l.order[1].next(l.queues[1])
	}
	return l.order[0].next(l.queues[0])
}

// advance starts all requests that may start now, and sets the timer for the next one.
func (l *Limiter) advance() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.dismiss()
	for w := l.next(); w != nil; w = l.next() {
		now := time.Now()
		at, _ := l.mayStart(w.tokens, now, planned)
		if at.IsZero() { // the next one may start only after another request has ended
			return
		}
		if at.After(now) {
			l.wake(at.Sub(now))
			return
		}
		l.start(w, now)
	}
}

func (l *Limiter) wake(after time.Duration) {
	if l.timer != nil {
		l.timer.Reset(after)
		return
	}
	l.timer = time.AfterFunc(after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.advance()
	})
}

// start starts the waiter's request.
func (l *Limiter) start(w *waiter, now time.Time) {
	l.order[w.class].start(l.queues[w.class], w)
	l.drop(w)
	switch {
	case w.class == 0:
		l.row = 0
	case len(l.queues[0]) > 0:
		l.row++
	}
	l.running++
	w.place = &Place{limiter: l, tokens: w.tokens}
	if l.limits.RequestsPerMinute > 0 || l.limits.TokensPerMinute > 0 {
		w.place.spent = l.minute.add(w.tokens, now)
	}
	l.server.started(w.place, now)
	close(w.done)
}

// dismiss removes all waiters whose patience is shorter than the server's pause.
func (l *Limiter) dismiss() {
	pause := time.Until(l.server.until)
	if pause <= 0 {
		return
	}
	for class := range l.queues {
		kept := l.queues[class][:0]
		for _, w := range l.queues[class] {
			if w.patience == 0 || pause <= w.patience {
				kept = append(kept, w)
				continue
			}
			w.err = &TooLateError{l.server.reason, pause, w.patience}
			close(w.done)
		}
		clear(l.queues[class][len(kept):])
		l.queues[class] = kept
	}
}

// A view determines which part of a limit counts as used.
type view bool

const (
	planned view = false // the reservations of running requests count as used
	sure    view = true  // reservations do not count, because they may be returned
)

// mayStart returns the time at which a request with the given number of tokens may start, provided that no other request starts
// before: now, a later time, or the zero time if a running request must end first. If there is a delay, the reason explains it.
func (l *Limiter) mayStart(tokens int, now time.Time, used view) (at time.Time, reason string) {
	at = now
	later := func(t time.Time, why string) {
		if t.After(at) {
			at, reason = t, why
		}
	}
	if n := l.limits.Concurrency; n > 0 && l.running >= n {
		return time.Time{}, fmt.Sprintf("at most %d requests at once", n)
	}
	if n := l.limits.RequestsPerMinute; n > 0 {
		later(l.minute.room(now, n-1, func(s *spent) int { return s.requests }), fmt.Sprintf("at most %d requests a minute", n))
	}
	if n := l.limits.TokensPerMinute; n > 0 {
		later(l.minute.room(now, max(n-tokens, 0), func(s *spent) int {
			if used == sure {
				return s.tokens - s.reserved
			}
			return s.tokens
		}), fmt.Sprintf("at most %d tokens a minute", n))
	}
	later(l.server.mayStart(tokens, now, used))
	return at, reason
}

// ahead returns the number of requests before the waiter in its queue.
func (l *Limiter) ahead(w *waiter) int { return max(slices.Index(l.queues[w.class], w), 0) }

// earliest returns a time before which the waiter cannot start, and the reason.
func (l *Limiter) earliest(w *waiter) (time.Time, string) {
	now := time.Now()
	at, reason := l.mayStart(w.tokens, now, sure)
	if at.IsZero() {
		at = now
	}
	if n := l.limits.RequestsPerMinute; n > 0 {
		at = at.Add(time.Duration(l.ahead(w)/n) * time.Minute)
	}
	if reason == "" {
		reason = "others are ahead of it"
	}
	return at, reason
}
