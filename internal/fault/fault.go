// Package fault declares methods with which an error describes the failure that it causes. The root package documents them for
// users, at Fail, Retry and Failure. A method of an error also applies to errors that wrap it. If several errors in a chain have
// the method, the outermost one is used.
package fault

import (
	"errors"
	"sync"
	"time"
)

// A Kinder is an error that specifies the kind of the failure.
type Kinder interface {
	error
	FailureKind() string
}

// A Noter is an error that adds meta to the node of the failure.
type Noter interface {
	error
	FailureMeta() map[string]string
}

// An Ender is an error from an account or another shared limit that refused a step. EndsRun reports whether the limit applies to
// the whole run, so that other steps would fail, too.
type Ender interface {
	error
	EndsRun() bool
}

// A Retrier is an error that says whether another attempt may succeed.
type Retrier interface {
	error
	Retryable() bool
}

// A Waiter is an error that specifies the time to wait before another attempt.
type Waiter interface {
	error
	RetryAfter() time.Duration
}

// A Counter is an error that specifies the number of attempts that led to it.
type Counter interface {
	error
	Attempts() int
}

// A Sender is an error of a request that is waiting for a provider's batch. Sent reports whether the request has been sent in a
// batch.
type Sender interface {
	error
	Sent() bool
}

// A Breaker is an error of a check that could not judge a value. Broken reports whether the check cannot judge any other value
// either.
type Breaker interface {
	error
	Broken() (always bool)
}

// Broken reports whether err says that a check could not judge a value, and whether it cannot judge any other value either.
func Broken(err error) (broken, always bool) {
	e, ok := errors.AsType[Breaker](err)
	return ok, ok && e.Broken()
}

// A Streak counts consecutive values that a check could not judge for the same reason. The zero Streak is ready to use. A Streak
// is safe for concurrent use.
type Streak struct {
	mu  sync.Mutex
	why string
	n   int
}

// mostUnjudged is the length of a streak from which a check counts as broken.
const mostUnjudged = 3

// Add adds the error of a check to the streak; it is nil if the check was able to judge the value. Add reports whether the check
// now counts as broken.
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

// Kind returns the failure kind that err specifies, or "" if it specifies none.
func Kind(err error) string {
	if e, ok := errors.AsType[Kinder](err); ok {
		return e.FailureKind()
	}
	return ""
}

// Meta returns the meta that err adds to the node of its failure, or nil if it adds none.
func Meta(err error) map[string]string {
	if e, ok := errors.AsType[Noter](err); ok {
		return e.FailureMeta()
	}
	return nil
}

// EndsRun reports whether err is an Ender that ends the whole run.
func EndsRun(err error) bool {
	e, ok := errors.AsType[Ender](err)
	return ok && e.EndsRun()
}

// Retryable reports whether another attempt may succeed. If err does not say, it returns true.
func Retryable(err error) bool {
	e, ok := errors.AsType[Retrier](err)
	return !ok || e.Retryable()
}

// RetryAfter returns the delay before another attempt that err specifies, or 0 if it specifies none.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[Waiter](err); ok {
		return e.RetryAfter()
	}
	return 0
}

// Sent returns whether err reports a request that is waiting for a provider's batch (waits), and whether that request has been
// sent in a batch (sent).
func Sent(err error) (sent, waits bool) {
	e, ok := errors.AsType[Sender](err)
	return ok && e.Sent(), ok
}

// Attempts returns the number of attempts that led to err, or 1 if err does not specify it.
func Attempts(err error) int {
	if e, ok := errors.AsType[Counter](err); ok {
		return max(1, e.Attempts())
	}
	return 1
}
