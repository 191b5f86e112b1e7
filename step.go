package stone

import (
	"bytes"
	"context"
	"crypto/sha256"
	"reflect"
	"strings"
	"sync"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Step calls fn with in as a recorded step of a body. If the run's recorder has a result of the step for the same input, Step
// returns it and does not call fn. In must contain everything that fn depends on, except nodes that the body reads. If the run
// has a recorder, the JSON of in is part of the key. A type that cannot be encoded as JSON is always an error.
//
// The result of fn makes a round trip through JSON, even without a recorder or outside a run. Only the kind and reason of an
// error are replayed. A panic of fn is an error of kind "panic".
//
// A name may be used again once the previous step has returned; two steps with one name at the same time are an error. Path
// numbers the steps of a name in the order in which they start. A resumed body must give the step at a path the input that it was
// recorded with: otherwise the run stops with kind "replay-mismatch" before fn is called. Steps that the body calls on other
// goroutines are distinguished by their input, and those with the same input by their order. The results are thus replayed
// correctly, but Path may differ: give such steps different names if they use Path as an idempotency key.
func Step[A, T any](ctx context.Context, name string, in A, fn func(context.Context, A) (T, error)) (v T, err error) {
	at, err := enterStep(ctx, name, reflect.TypeFor[A]())
	if err != nil {
		return v, err
	}
	if at != nil {
		defer at.leaveStep()
		if at.recorded() {
			return recorded(at, stepKind, in, fn)
		}
	}
	return unrecorded(ctx, at, name, in, fn)
}

// Value returns what fn returns and records it as a part of a body: a resumed run receives the recorded value and does not call
// fn. Use it for values that differ from process to process, such as the time, a random number or a text built from these. Fn
// must have no effects, cost nothing and be fast; use Step for everything else. Only the kind and reason of an error are
// replayed.
//
// T must survive a round trip through JSON. In a run without a recorder, and outside a run, Value only calls fn. A name may be
// used again as in Step.
func Value[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (v T, err error) {
	if f := frameOf(ctx); f == nil || !f.recorded() {
		return fn(ctx)
	}
	at, err := enterStep(ctx, name, reflect.TypeFor[struct{}]())
	if err != nil {
		return v, err
	}
	defer at.leaveStep()
	return recorded(at, step.Value, struct{}{}, func(ctx context.Context, _ struct{}) (T, error) { return fn(ctx) })
}

// stepKind is the key kind of a Step.
const stepKind = "step"

// enterStep returns the frame of a Step, or nil outside a run.
func enterStep(ctx context.Context, name string, input reflect.Type) (*frame, error) {
	if _, err := canon.Addressable(input); err != nil {
		return nil, noInput(name, err)
	}
	f := frameOf(ctx)
	if f == nil {
		return nil, nil
	}
	visit, alone := f.names().enter(name)
	if !alone {
		return nil, Fail(kind.Error, "step %q is already running: give steps that run at the same time different names", name)
	}
	at := &struct { // one allocation
		frame
		spec spec
	}{spec: spec{parts: parts{name: name, composite: noComposite}}}
	at.stand(f, &at.spec, stepSegment, visit)
	at.Context = ctx
	return &at.frame, nil
}

func (f *frame) leaveStep() {
	f.release()
	f.up.names().leave(f.spec.name)
}

// unrecorded and recorded are separate functions to keep the stack of a waiting step small.
func unrecorded[A, T any](ctx context.Context, at *frame, name string, in A, fn func(context.Context, A) (T, error)) (v T, err error) {
	if at == nil {
		v, err = fn(ctx, in)
	} else {
		v, err = given(at, in, fn)
	}
	if err != nil {
		return *new(T), err
	}
	return kept(name, v)
}

func recorded[A, T any](at *frame, kind string, in A, fn func(context.Context, A) (T, error)) (v T, err error) {
	input, err := canon.Append(nil, &in)
	if err != nil {
		return v, noInput(at.spec.name, err)
	}
	key := at.stepKey(kind, input)
	var written []byte // the JSON of v, if v is a copy of the result of fn
	rec, err := at.record(key, func(own *frame) (step.Record, error) {
		v, written = *new(T), nil // a recorder may call it again
		result, err := given(own, in, fn)
		if err != nil {
			return step.Record{}, err
		}
		rec, err := own.valueRecord(&result) // a variable, so that methods with pointer receivers apply
		if err == nil && canon.Copy(&v, &result) {
			written = rec.Content
		}
		return rec, err
	})
	switch {
	case err != nil:
		return *new(T), err
	case written != nil && bytes.Equal(written, rec.Content):
		return v, nil
	}
	v = *new(T)
	if err := jsonv2.UnmarshalV1(rec.Content, &v); err != nil {
		var zero T
		return zero, at.mismatch(key, "its value cannot be read as %T: %w", v, err)
	}
	return v, nil
}

func noInput(name string, err error) error {
	return Fail(kind.BadContent, "the input of step %q has no JSON: %w", name, err)
}

// given calls fn and turns a panic into an error.
func given[A, T any](f *frame, in A, fn func(context.Context, A) (T, error)) (v T, err error) {
	defer f.caught(&err)
	return fn(f, in)
}

// texts pools buffers for JSON round trips.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// maxText is the maximum size of a buffer in texts, in bytes.
const maxText = 64 << 10

// kept returns the result of a step after a round trip through JSON, or an equal copy.
func kept[T any](name string, v T) (T, error) {
	var copied, out T
	if canon.Copy(&copied, &v) {
		return copied, nil
	}
	text := texts.Get().(*[]byte)
	raw, err := canon.Append((*text)[:0], &v)
	if err != nil {
		return out, badContent(err)
	}
	err = jsonv2.UnmarshalV1(raw, &out) // the decoder copies the parts of raw that it keeps
	if cap(raw) <= maxText {
		*text = raw
		texts.Put(text)
	}
	if err != nil {
		return out, Fail(kind.BadContent, "the result of step %q cannot be read back from its JSON: %w", name, err)
	}
	return out, nil
}

// stepKey makes the key of a Step or Value. The key's digest includes how many earlier calls had the same name and input.
func (f *frame) stepKey(kind string, input []byte) step.Key {
	k := step.Key{RunID: f.run.id, Path: f.path(), Kind: kind, Name: f.spec.name}
	in := sha256.Sum256(input)
	nth := ordinal(f.up.names().count(f.spec.name, in))
	h := sha256.New()
	_, part := f.up.partOf()
	h.Write(part[:])
	h.Write(in[:])
	place := k.Path
	if f.index > 1 {
		place = place[:strings.LastIndexByte(place, '@')]
	}
	h.Write(append(f.place(kind, place), 0))
	h.Write(nth)
	k.Digest = f.inAttempts(sum(h), k.Path)
	return k
}

// stepInput identifies the steps under a frame that have the same name and input.
type stepInput struct {
	name string
	in   dag.ID
}

// count returns how often a name was used with an input, including this time.
func (n *stepNames) count(name string, in dag.ID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inputs == nil {
		n.inputs = map[stepInput]int{}
	}
	n.inputs[stepInput{name, in}]++
	return n.inputs[stepInput{name, in}]
}
