// Package fault declares methods by which an error describes the failure that it causes. The root package documents them for
// users at Fail, Retry and Failure. A method also applies to all wrapping errors; the outermost one wins.
package fault

import (
	"errors"
	"sync"
	"time"
)

// A Kinder knows the kind of the failure.
type Kinder interface {
	error
	FailureKind() string
}

// A Noter adds meta to the failure's node.
type Noter interface {
	error
	FailureMeta() map[string]string
}

// An Ender is a refusal by an account or another shared limit. EndsRun reports whether the limit applies to the whole run: then
// other steps would fail too.
type Ender interface {
	error
	EndsRun() bool
}

// A Retrier knows whether another attempt may succeed.
type Retrier interface {
	error
	Retryable() bool
}

// A Waiter knows how long to wait before another attempt.
type Waiter interface {
	error
	RetryAfter() time.Duration
}

// A Counter knows how many attempts led to the error.
type Counter interface {
	error
	Attempts() int
}

// A Sender is an error of a request that waits for a provider's batch. Sent reports whether a batch has the request.
type Sender interface {
	error
	Sent() bool
}

// A Breaker is an error of a check that could not judge. Broken reports whether it cannot judge other values either.
type Breaker interface {
	error
	Broken() (always bool)
}

// Broken reports whether a check could not judge, and whether it can judge no other value either.
func Broken(err error) (broken, always bool) {
	e, ok := errors.AsType[Breaker](err)
	return ok, ok && e.Broken()
}

// A Streak counts consecutive values that a check could not judge for the same reason. The zero Streak is ready, and safe
// for concurrent use.
type Streak struct {
	mu  sync.Mutex
	why string
	n   int
}

// mostUnjudged is the length of a streak that shows that a check is broken.
const mostUnjudged = 3

// Add counts the error of a check, which is nil if the check has judged. It reports whether the check is broken.
func (s *Streak) Add(err error) bool {
	unjudged, always := Broken(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !unjudged:
		s.why, s.n = "", 0
	case err.Error() == s.why:
		s.n++
	default:
		s.why, s.n = err.Error(), 1
	}
	return always || s.n >= mostUnjudged
}

// Kind returns the kind of the failure that err names, or "".
func Kind(err error) string {
	if e, ok := errors.AsType[Kinder](err); ok {
		return e.FailureKind()
	}
	return ""
}

// Meta returns what err adds to the meta of its failure, or nil.
func Meta(err error) map[string]string {
	if e, ok := errors.AsType[Noter](err); ok {
		return e.FailureMeta()
	}
	return nil
}

// EndsRun reports whether err says that the run ends with it.
func EndsRun(err error) bool {
	e, ok := errors.AsType[Ender](err)
	return ok && e.EndsRun()
}

// Retryable reports whether another attempt may succeed. The default is true.
func Retryable(err error) bool {
	e, ok := errors.AsType[Retrier](err)
	return !ok || e.Retryable()
}

// RetryAfter returns how long err asks to wait before another attempt, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[Waiter](err); ok {
		return e.RetryAfter()
	}
	return 0
}

// Sent reports whether err waits for a batch, and whether a batch has the request.
func Sent(err error) (sent, waits bool) {
	e, ok := errors.AsType[Sender](err)
	return ok && e.Sent(), ok
}

// Attempts returns how many attempts led to err, at least 1.
func Attempts(err error) int {
	if e, ok := errors.AsType[Counter](err); ok {
		return max(1, e.Attempts())
	}
	return 1
}
