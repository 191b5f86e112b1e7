package stone

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
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
		attempt := i
		if f.Wants(slog.LevelWarn) {
			failure := failureOf(err, f.path())
			f.tell(f.spec.name, failure.Path, event.AttemptFailed{Attempt: attempt, Kind: string(failure.Kind), Reason: failure.Reason})
		}
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

// tries has the results of the steps within a leaf that is tried again. An attempt takes them from
// the attempts before it, so that nothing that has succeeded is done or paid for twice. It is a part
// of the process: a resumed run makes the same attempts again and so has the same results. The tries
// of an outer leaf also serve the leaves within it.
type tries struct {
	mu   sync.Mutex
	done map[dag.ID]step.Record // by frame.twin
	paid map[string]bool        // the paths of the steps among them, without attempts
}

// tries returns the tries of the outermost attempt around f, or nil if f is in no leaf that is tried
// again.
func (f *frame) tries() (outer *tries) {
	if !f.run.retries.Load() {
		return nil
	}
	for up := f.up; up != nil; up = up.up {
		if x := up.extra.Load(); x != nil && x.tries != nil {
			outer = x.tries
		}
	}
	return outer
}

// retrying is a step.Recorder that looks into the earlier attempts first.
type retrying struct {
	*tries
	twin *dag.ID // of the step that is asked for
	next step.Recorder
}

// Do implements step.Recorder.
func (r *retrying) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	r.mu.Lock()
	rec, ok := r.done[*r.twin]
	r.mu.Unlock()
	if ok {
		rec.Replayed, rec.Path = true, key.Path
		return rec, nil
	}
	rec, err := r.next.Do(ctx, key, work)
	if err == nil && rec.Failure == nil && !rec.Differs {
		kept := rec
		kept.Node = nil
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.done[*r.twin] = kept; key.Kind == stepKind {
			place, _ := address.Attempts(key.Path)
			r.paid[place] = true
		}
	}
	return rec, err
}

// twinOf notes what identifies the work at f in each attempt of the leaves around it: what its key
// covers, with a path that has no attempts.
func (f *frame) twinOf(key *step.Key, parts ...[]byte) {
	if f.tries() == nil {
		return
	}
	h := sha256.New()
	place, _ := address.Attempts(key.Path)
	h.Write([]byte(key.Kind + "\x00" + place + "\x00"))
	for up := f.up; up != nil; up = up.up {
		if x := up.extra.Load(); x != nil && x.twin != nil {
			h.Write(x.twin[:])
			break
		}
	}
	for _, part := range parts {
		h.Write(part)
	}
	twin := sum(h)
	f.more().twin = &twin
}

// again makes the frame of the leaf's i-th attempt at f, with the results of earlier attempts.
func (f *frame) again(i int, before *tries) *frame {
	f.run.retries.Store(true)
	a := f.below(f.spec, attemptSegment, i)
	a.more().tries = before
	return a
}

// repeated reports whether f is in a further attempt, and an earlier one has made the Step at path.
func (f *frame) repeated(path string) bool {
	if !f.run.retries.Load() {
		return false
	}
	var outer *tries
	further := false
	for up := f; up != nil; up = up.up {
		if x := up.extra.Load(); x != nil && x.tries != nil {
			outer, further = x.tries, further || up.index > 1
		}
	}
	return further && outer.has(path)
}

// has reports whether a completed attempt has made the Step at path.
func (t *tries) has(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	place, _ := address.Attempts(path)
	return t.paid[place]
}

// ordinal is the number n as a part of a key.
func ordinal(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
