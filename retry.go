package stone

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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
	maxRetryAfter = time.Hour   // an error that requires a longer delay is not retried
	grace         = time.Second // time that a body has to return after its Timeout
)

// attempts runs the body of a leaf, and retries it according to the leaf's policy. Every attempt has its own address, and reuses
// the steps that earlier attempts have completed.
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
		_ = retryafter.Sleep(f.Context, policy.pause(i, err)) // if Sleep is interrupted, over returns the reason
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

// pause returns the delay after the i-th attempt, which failed with err. It is at least the delay that err requests. If err is a
// replayed failure, pause returns zero.
func (p *Retry) pause(i int, err error) time.Duration {
	if _, replayed := errors.AsType[*replayedError](err); replayed {
		return 0
	}
	return retryafter.Pause(i, p.Backoff, maxBackoff, fault.RetryAfter(err))
}

// attempt runs the body once, within its timeout if it has one.
func (f *frame) attempt(d dag.DAG) (*dag.Node, error) {
	if f.spec.timeout <= 0 {
		return f.call(d)
	}
	return f.timed(d)
}

// timed and retried are separate functions to keep the stack of a waiting body small.
func (f *frame) timed(d dag.DAG) (*dag.Node, error) {
	// A body that ignores its context is abandoned, so it needs a frame and a goroutine of its own.
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
		r := result{err: Fail(kind.Panic, "the body called runtime.Goexit")}
		defer func() { done <- r }()
		r.n, r.err = own.call(d)
	}()
	// The limit also applies if the run ends earlier: it then waits for this body until the limit.
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

// tries contains the results of the steps within a retried leaf. Later attempts reuse them, so nothing that succeeded is repeated
// or paid for twice. The recorder has the results of earlier processes; see everyAttempt. The tries of an outer leaf also serve the
// leaves within it.
type tries struct {
	mu   sync.Mutex
	done map[dag.ID]step.Record // results of the steps, by frame.twin
	paid map[string]bool        // paths of the leaf's steps, without attempt numbers
}

// tries returns the tries of the outermost retried leaf around f, or nil if there is none.
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

// retrying is a step.Recorder that looks up a step in earlier attempts before it asks the next recorder.
type retrying struct {
	*tries
	twin *dag.ID // twin of the requested step
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
	if _, own := address.Attempts(key.Path); rec.Path != "" && !rec.Differs {
		if _, of := address.Attempts(rec.Path); !slices.Equal(of, own) { // steps are ordered only within one attempt
			rec.Path = key.Path
		}
	}
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

// inFirst returns path, which lies within f, without attempt numbers, as in the first attempt at every leaf.
func (f *frame) inFirst(path string) string {
	if f.tries() != nil {
		path, _ = address.Attempts(path)
	}
	return path
}

// inAttempts returns the digest of the work at f, which covers the attempt numbers in path. The argument twin is the digest of the
// same work in the first attempts; it identifies the work in all attempts.
func (f *frame) inAttempts(twin dag.ID, path string) dag.ID {
	if f.tries() == nil {
		return twin
	}
	f.more().twin = &twin
	return inAttempts(twin, path)
}

func inAttempts(twin dag.ID, path string) dag.ID {
	b := twin[:]
	_, numbers := address.Attempts(path)
	for i, n := range numbers {
		if n > 1 {
			b = strconv.AppendInt(append(strconv.AppendInt(b, int64(i), 10), '~'), int64(n), 10)
		}
	}
	if len(b) == len(twin) {
		return twin
	}
	return sha256.Sum256(b)
}

// twin returns the ID that identifies the work at f in all attempts, or nil if f is not within an attempt.
func (f *frame) twin() *dag.ID {
	if x := f.extra.Load(); x != nil {
		return x.twin
	}
	return nil
}

// everyAttempt returns the keys of the work at f in all attempts at the leaves around it, beginning with key itself. It returns nil
// if f is not within an attempt. All keys are needed because, in a resumed run, an attempt may stop at a different step than
// before, and steps on different goroutines have no order.
func (f *frame) everyAttempt(key step.Key, made func(place string) []string) []step.Key {
	twin := f.twin()
	if twin == nil {
		return nil
	}
	up := f.up
	for up.seg != attemptSegment {
		up = up.up
	}
	inner := strings.Count(up.path(), "/") + 1
	place, numbers := address.Attempts(key.Path)
	parts := strings.Split(place, "/")
	clear(numbers[:inner])
	first := address.InAttempts(place, numbers) // key's place in the first attempt at each leaf
	paths := []string{key.Path, first}
	for n := inner; n > 0; n-- {
		of := strings.Join(parts[:n], "/")
		for _, path := range made(of) {
			paths = append(paths, path+first[len(of):])
		}
	}
	var keys []step.Key
	for i, path := range paths {
		if i == 0 || path != key.Path {
			keys = append(keys, step.Key{RunID: key.RunID, Path: path, Kind: key.Kind, Name: key.Name, Digest: inAttempts(*twin, path), Loose: true})
		}
	}
	return keys
}

// again returns a new frame for the i-th attempt at the leaf of f. The argument before contains the results of earlier attempts.
func (f *frame) again(i int, before *tries) *frame {
	f.run.retries.Store(true)
	a := f.below(f.spec, attemptSegment, i)
	a.more().tries = before
	return a
}

// repeated reports whether f is in a second or later attempt and an earlier attempt has completed the Step at path.
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

// has reports whether an attempt has completed the Step at path.
func (t *tries) has(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	place, _ := address.Attempts(path)
	return t.paid[place]
}

// ordinal returns n in decimal digits, for use in a key.
func ordinal(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
