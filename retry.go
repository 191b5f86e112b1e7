package stone

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

const (
	maxBackoff    = 30 * time.Second
	maxRetryAfter = time.Hour   // an error that asks for a longer wait is not retried
	grace         = time.Second // for a body to return after its Timeout
)

// attempts runs the body of a leaf and retries it according to its policy. Every
// attempt has an address of its own. It takes the results of the steps that an earlier one has
// completed.
func (f *frame) attempts(d dag.DAG) (*dag.Node, error) {
	if err := f.over(); err != nil {
		return nil, err
	}
	if f.spec.retry == nil {
		return f.attempt(d)
	}
	return f.retried(d, f.spec.retry)
}

func (f *frame) retried(d dag.DAG, policy *Retry) (*dag.Node, error) {
	made := 0
	before := &tries{done: map[dag.ID]step.Record{}, paid: map[string]bool{}}
	for i := 1; ; i++ {
		a := f.again(i, before)
		n, err := a.attempt(d)
		made += fault.Attempts(err)
		if err == nil || made >= policy.Attempts || !policy.covers(err) {
			return n, err
		}
		a.takeBack(err)
		f.triedInVain(i, err)
		f.keepNothing()
		_ = retryafter.Sleep(f.Context, policy.pause(i, err)) // over says why the context ended
		if err := f.over(); err != nil {
			return nil, err
		}
	}
}

// covers reports whether the policy retries after err.
func (p *Retry) covers(err error) bool {
	if ofRun(err) {
		return false
	}
	k := kindOf(err)
	switch k {
	case kind.Canceled, kind.Waiting, kind.UndeclaredQuery, kind.MissingInput, kind.BadContent:
		return false
	}
	if errors.Is(err, kind.Waiting) || !fault.Retryable(err) || fault.RetryAfter(err) > maxRetryAfter {
		return false
	}
	return len(p.Kinds) == 0 || slices.Contains(p.Kinds, k)
}

// pause returns how long to wait after the i-th attempt, at least as long as the error asks.
// After a replayed failure it is zero.
func (p *Retry) pause(i int, err error) time.Duration {
	if _, replayed := errors.AsType[*replayedError](err); replayed {
		return 0
	}
	return retryafter.Pause(i, p.Backoff, maxBackoff, fault.RetryAfter(err))
}

// attempt runs the body once, within its timeout.
func (f *frame) attempt(d dag.DAG) (*dag.Node, error) {
	if f.spec.timeout <= 0 {
		return f.call(d)
	}
	return f.timed(d)
}

// timed and retried are separate functions to keep the stack of a waiting body small.
func (f *frame) timed(d dag.DAG) (*dag.Node, error) {
	// A body that ignores its context is abandoned, so it gets a frame and a
	// goroutine of its own.
	own := f.below(f.spec, innerSegment, 0)
	ctx, cancel := context.WithTimeoutCause(f.Context, f.spec.timeout, Fail(kind.Timeout, "took longer than %v", f.spec.timeout))
	defer cancel()
	own.Context = ctx
	type result struct {
		n   *dag.Node
		err error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: Fail(kind.Panic, "the body ended its goroutine")}
		defer func() { done <- r }()
		r.n, r.err = own.call(d)
	}()
	// The limit also applies when the run ends earlier: until then the run waits for
	// this body as for any other.
	limit := time.NewTimer(f.spec.timeout + grace)
	defer limit.Stop()
	select {
	case r := <-done:
		return r.n, r.err
	case <-limit.C:
		own.leftBehind()
		return nil, stopped(ctx)
	}
}
