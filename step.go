package stone

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Step calls fn with in as a recorded step of a body and returns the result. If the run's recorder already has a result of this
// step for the same input, Step returns the recorded result and does not call fn. The argument in must contain everything that fn
// depends on, except the nodes that the body reads. If the run has a recorder, the JSON encoding of in is part of the step's key.
// If A cannot be encoded as JSON, Step returns an error, even without a recorder.
//
// Step encodes the result of fn as JSON and decodes it again, even without a recorder or outside a run. When a step is replayed,
// its error has only the original kind and reason. A panic of fn is an error of kind "panic".
//
// A body may use a name again once the previous step with that name has returned; two concurrent steps with the same name are an
// error. In paths, the steps with the same name are numbered in the order in which they start. If a resumed body calls the step
// at a path with a different input than the recorded one, the run stops with kind "replay-mismatch" before fn is called. Steps
// that the body calls on other goroutines are identified by their input, and steps with equal inputs by their order. Their
// results are therefore replayed correctly, but a step's Path may differ after a resume: give the steps different names if they
// use Path as an idempotency key.
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

// Value returns the result of fn and records it: in a resumed run, it returns the recorded result and does not call fn. Use it
// for values that differ from process to process, such as the time, a random number or a text built from these. The function fn
// must be fast, free of charge and without side effects; use Step for everything else. A replayed error has only the original
// kind and reason.
//
// T must survive a round trip through JSON. Outside a run, and in a run without a recorder, Value only calls fn. As with Step, a
// name may be used again once the previous call has returned.
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

// unrecorded and recorded are separate functions, because one function would use more stack while a step waits.
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

// kept returns the result of a step as it reads after a round trip through JSON. If canon can copy the value directly, it skips
// the round trip.
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

// stepKey returns the key of a Step or Value. Its digest includes the number of calls so far with the same name and input.
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

// count returns the number of calls so far with this name and input, including the current call.
func (n *stepNames) count(name string, in dag.ID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inputs == nil {
		n.inputs = map[stepInput]int{}
	}
	n.inputs[stepInput{name, in}]++
	return n.inputs[stepInput{name, in}]
}

// key returns the key of the leaf or decision at f, which runs on the DAG d.
func (f *frame) key(kind string, d dag.DAG) step.Key {
	k := step.Key{RunID: f.run.id, Path: f.path(), Kind: kind, Name: f.spec.name}
	fingerprint := Ashlar{f.spec}.Fingerprint()
	if kind == "decision" { // A decision remains valid whatever happens to the steps below it.
		fingerprint = f.spec.own()
	}
	h := sha256.New()
	h.Write(fingerprint[:])
	h.Write(append(f.place(kind, k.Path), 0))
	reads := f.digest(d)
	h.Write(reads[:])
	k.Digest = f.inAttempts(sum(h), k.Path)
	k.Loose = f.spec.glue
	extra, age := f.spec.cached(kind, In(f).Grant())
	if age > 0 {
		k.Fresh = f.run.now().Add(-age)
	}
	if f.spec.reusable || age > 0 {
		h.Reset()
		h.Write(fingerprint[:])
		for _, q := range f.spec.reads() {
			id := q.Digest(d, true)
			h.Write(id[:])
		}
		h.Write(f.appendSample(nil))
		h.Write([]byte{0})
		h.Write(f.rendered(kind, d))
		h.Write(extra)
		h.Sum(k.Reuse[:0])
	}
	return k
}

// digest returns a digest of everything that the body of f and its children read from d.
func (f *frame) digest(d dag.DAG) dag.ID {
	h := sha256.New()
	for _, q := range f.spec.reads() {
		id := q.Digest(d, false)
		h.Write(id[:])
	}
	return sum(h)
}

func sum(h hash.Hash) (id dag.ID) {
	h.Sum(id[:0])
	return id
}

// reads returns the queries of s. If s is a leaf, the queries of the children that its body runs are included, because the
// children run on the same DAG.
func (s *spec) reads() []dag.Query {
	if s.form != leafForm || len(s.children) == 0 {
		return s.queries
	}
	f := s.found()
	f.readsOnce.Do(func() {
		f.reads = slices.Clone(s.queries)
		for _, c := range s.children {
			c.each(func(below *spec) {
				for _, q := range below.queries {
					if !slices.Contains(f.reads, q) {
						f.reads = append(f.reads, q)
					}
				}
			})
		}
	})
	return f.reads
}

// cached returns an additional part of the leaf's reuse key and the maximum age of a result that the leaf may reuse from another
// run. An age of 0 means that it may not reuse results. See Detail.
func (s *spec) cached(kind string, grant []string) (key []byte, age time.Duration) {
	if cached := s.said().Cached; cached != nil && kind == "leaf" {
		return cached(grant)
	}
	return nil, 0
}

// rendered returns the digest of the text that a leaf renders from d, or nil if f is not a leaf or renders no text. If rendering
// fails, the result is the digest of a fixed text, because the body will fail in the same way.
func (f *frame) rendered(kind string, d dag.DAG) []byte {
	if kind != "leaf" {
		return nil
	}
	render := f.spec.render
	if own := f.spec.said().Render; own != nil {
		render = own
	}
	if render == nil {
		return nil
	}
	at := f.below(f.spec, innerSegment, 0)
	defer at.release()
	rendered, err := guarded(at, func(context.Context) ([]byte, error) { return render(d.Within(at)) })
	if err != nil {
		rendered = []byte("it fails")
	}
	id := sha256.Sum256(rendered)
	return id[:]
}

// appendSample appends the rounds, lanes, visits and attempts that distinguish f from other executions of the same ashlar, and
// returns the extended buffer. A lane of a Map is identified by its item rather than its number, so inserting an item does not
// change the keys of the other lanes.
func (f *frame) appendSample(b []byte) []byte {
	if f.up != nil {
		b = f.up.appendSample(b)
	}
	switch f.seg {
	case childSegment:
		if n := f.up.spec.occurrence(int(f.index)); n > 1 {
			b = strconv.AppendInt(append(b, '#'), int64(n), 10)
		}
	case visitSegment, stepSegment:
		if f.index > 1 {
			b = strconv.AppendInt(append(b, '@'), int64(f.index), 10)
		}
	case attemptSegment:
		if f.index > 1 {
			b = strconv.AppendInt(append(b, '~'), int64(f.index), 10)
		}
	case indexSegment:
		b = append(b, '[')
		if x := f.up.extra.Load(); x != nil && x.items != nil {
			b = x.items.appendItem(b, int(f.index))
		} else {
			b = strconv.AppendInt(b, int64(f.index), 10)
		}
		b = append(b, ']')
	}
	return b
}

// laneItems holds the items that identify the lanes of a Map.
type laneItems struct {
	starts []dag.DAG
	once   sync.Once
	nth    []int // the index of each lane among lanes with an equal item
}

func (l *laneItems) appendItem(b []byte, lane int) []byte {
	l.once.Do(func() {
		l.nth = make([]int, len(l.starts))
		seen := make(map[string]int, len(l.starts))
		for i, start := range l.starts {
			item := start.Latest().JSON()
			l.nth[i] = seen[item]
			seen[item]++
		}
	})
	id := sha256.Sum256([]byte(l.starts[lane].Latest().JSON()))
	return binary.AppendUvarint(append(b, id[:]...), uint64(l.nth[lane]))
}

// partOf returns the frame and the digest of the innermost recorded step or Scoped whose body contains f, or nil and the zero
// digest if there is none.
func (f *frame) partOf() (of *frame, digest dag.ID) {
	for ; f != nil; f = f.up {
		if x := f.extra.Load(); x != nil && x.digest != nil {
			return f, *x.digest
		}
	}
	return nil, dag.ID{}
}

// place returns the bytes that identify the place of f in its key: the kind and the path. Within a Step, it returns the kind, the
// digest of the Step and the path below the Step, because Steps may start in any order.
func (f *frame) place(kind, path string) []byte {
	b := append([]byte(kind), 0)
	of, digest := f.partOf()
	for of != nil && !of.ofStep() {
		of, digest = of.up.partOf()
	}
	if of != nil {
		b, path = append(b, digest[:]...), path[len(of.path()):]
	}
	return append(b, f.inFirst(path)...)
}

// unshare marks every leaf and Step around f as having read nodes that its key does not cover.
func (f *frame) unshare() {
	for ; f != nil; f = f.up {
		if f.spec.form == leafForm || f.seg == stepSegment {
			f.more().unshared.Store(true)
		}
	}
}

// unsharedYet reports whether unshare has been called for f or for a frame below f.
func (f *frame) unsharedYet() bool {
	x := f.extra.Load()
	return x != nil && x.unshared.Load()
}

// Fingerprint returns a digest of everything that defines a and the ashlars below it, except code: their forms, names, types,
// schemas, queries, branches, bounds and versions, the choices of their questions, and the fingerprints of their details. The
// digest does not change with the code of a function, so change a leaf's Version whenever its body changes.
func (a Ashlar) Fingerprint() dag.ID {
	s := a.spec()
	f := s.found()
	f.printOnce.Do(func() {
		h := sha256.New()
		s.describe(h)
		f.own = sum(h)
		for _, c := range s.children {
			print := c.Fingerprint()
			h.Write(print[:])
		}
		f.print = dag.ID(h.Sum(nil))
	})
	return f.print
}

// own returns the fingerprint of s without its children.
func (s *spec) own() dag.ID {
	Ashlar{s}.Fingerprint()
	return s.found().own
}

// describe writes the parts of s that its fingerprint covers, except its children.
func (s *spec) describe(w io.Writer) {
	fmt.Fprintf(w, "%s %q %q %q %q", formNames[s.form], s.name, s.keys, s.lens, s.version)
	fmt.Fprintf(w, " %d %d %d %t", s.max, s.lanes, s.quorum, s.allLanes)
	if s.glue {
		fmt.Fprint(w, " glue")
	}
	if s.allowEmpty {
		fmt.Fprint(w, " empty")
	}
	for t := range s.produces() {
		describeType(w, t)
	}
	for _, q := range s.queries {
		fmt.Fprintf(w, " %s", q)
		describeType(w, q.Type())
	}
	if s.question != nil {
		fmt.Fprintf(w, " asks %q", s.question.Choices)
		if s.mayDecline {
			fmt.Fprint(w, " may decline")
		}
	}
	if own := s.said().Fingerprint; own != nil {
		fmt.Fprintf(w, " %x", sha256.Sum256(own()))
	}
	fmt.Fprintln(w)
}

func describeType(w io.Writer, t dag.AnyType) {
	if t != nil {
		fmt.Fprintf(w, " %q %s", t.Name(), t.Schema().JSON())
	}
}

// found holds facts that are computed from a spec when they are first needed.
type found struct {
	accepted  atomic.Pointer[map[string]bool] // the last accepted input types; see accept
	printOnce sync.Once
	print     dag.ID
	own       dag.ID    // see spec.own; written with print
	countOnce sync.Once // guards counts; see occurrence
	counts    []int

	readsOnce sync.Once // guards reads, which is set only for a leaf with children
	reads     []dag.Query

	courseOnce sync.Once // guards course, which is set only for a flow
	course     *course
}
