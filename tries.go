package stone

import (
	"context"
	"crypto/sha256"
	"strconv"
	"sync"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/step"
)

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

// twinOf sets the identity of the work at f across attempts of the leaves around it: all that its key covers, with a
// path without attempts.
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
