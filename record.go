package stone

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
)

// A Recorder remembers what a run has done. Every leaf, every decision and every
// Step goes through it. Its method is called from several goroutines at once,
// within one run never at the same time for one key.
//
// An error of a Recorder stops the run with kind "recorder-failed", or that of a
// *Failure: what is under way comes to its end, and nothing is rescued. That is
// also how a process that is about to end stops a run: its Recorder refuses what is
// not recorded.
//
// A Recorder with a method Clean(string) string takes secrets out of the failures
// that the run makes itself, such as that of a Scoped body; what Do is given it can
// clean there.
type Recorder interface {
	// Do returns what is recorded under the key, with Replayed set. If nothing
	// is, it calls work once, records what that returns, and returns it.
	//
	// Two records are under one key if they have the same RunID and Digest, or
	// different RunIDs and the same Reuse that is not zero: a run never reuses
	// from itself. Under Reuse no record with a Failure is found, and none that
	// is Unshared. If somebody else has recorded the key while work ran, the
	// record that came first stands, and is returned with Replayed set.
	//
	// An error of work is returned, and nothing is recorded: the work has not
	// come to its end. Work does not panic. What it returns is recorded also
	// if ctx is done by then, since it may have been paid for.
	//
	// Ctx is that of the step, as Event and Path understand it. The context
	// that work is given must be ctx or made from it: its values reach the
	// body, and cancelling it cancels the body.
	Do(ctx context.Context, key Key, work func(context.Context) (Record, error)) (Record, error)
}

// A RunWrapper is a Recorder that also keeps runs as a whole: it is told when one
// starts and how it ends.
type RunWrapper interface {
	Recorder
	// WrapRun is called by Run in place of the run itself. It calls run at most
	// once, with cfg or a Config made from it, for example with a RunID, a recorded
	// Input, a Frontend around that of cfg, or another Recorder, which is then used
	// as it is. What WrapRun returns is what Run returns.
	WrapRun(ctx context.Context, p Ashlar, cfg Config, run func(context.Context, Config) (Result, error)) (Result, error)
}

// A Record is what a step did. Its JSON is all that is needed to replay it.
type Record struct {
	// Type, Content, Meta and Time are those of the node of a leaf. A decision
	// or a step has its value as Content.
	Type    string            `json:"type,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time"`
	// Failure is set, in place of Type and Content, if the step failed. That is
	// recorded too, or a resumed run could take another way.
	Failure *dag.FailureContent `json:"failure,omitempty"`
	// Kept is set if a leaf has called Keep or Await: the nodes that it keeps
	// beside its own, and where they stand. It is for replaying alone.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Unshared is set if the body has called RunDynamic or Await, which read what
	// no key covers: no other run may reuse the record.
	Unshared bool `json:"unshared,omitempty"`
	// Sum stands for Type, Content, Failure and Kept, but for times and metas, so
	// that it is the same in two runs that did the same. A record that does not fit
	// its sum was changed, and is refused when it is replayed.
	Sum dag.ID `json:"sum"`

	// Node is the node of a leaf as it stands in this run, for a recorder that
	// keeps nodes: whatever it was made from is found through its parents. It
	// is nil in everything else and in what is replayed.
	Node *dag.Node `json:"-"`
	// Replayed reports that the record is from earlier.
	Replayed bool `json:"-"`
}

// record passes one thing to do through the recorder. Work gets a frame of its
// own, since the context of a body ends before its result is recorded. A failure
// is recorded like a result; when the run is over or waits for an answer nothing
// is, since the work may not have come to its end.
func (f *frame) record(key Key, work func(*frame) (Record, error)) (Record, error) {
	if err := f.run.over(); err != nil {
		return Record{}, err
	}
	if overtaken(f.Context) {
		return Record{}, f.over()
	}
	at := f.below(f.spec, innerSegment, 0)
	defer at.release()
	var failed, unfinished error
	do := func(ctx context.Context) (Record, error) {
		own := at.below(f.spec, innerSegment, 0)
		defer own.release()
		own.Context = ctx
		own.more().digest = &key.Digest
		rec, err := work(own)
		if err != nil && (f.run.over() != nil || f.passing(err) || overtaken(f.Context)) {
			unfinished = err
			return Record{}, err
		}
		if failed = err; err != nil && rec.Failure == nil { // which has one if it comes from elsewhere
			rec = failureRecord(err, f.run.now())
		}
		if rec.Kept, err = f.groundRecord(failed != nil); err != nil {
			return Record{}, err
		}
		rec.Unshared = f.unsharedYet()
		rec.Sum = rec.Seal()
		return rec, nil
	}
	recorder := f.run.recorder
	if recorder == nil { // for work that is done elsewhere, see DoBy
		recorder = forgetful{}
	}
	rec, err := guarded(at, func(context.Context) (Record, error) { return recorder.Do(at, key, do) })
	switch {
	case unfinished != nil:
		return Record{}, unfinished
	case err != nil && f.over() != nil: // the recorder was told to stop too
		return Record{}, f.over()
	case err != nil:
		return Record{}, f.run.halt(recorderFailure(key.Path, err))
	case rec.Replayed:
		return f.replay(key, rec)
	}
	return rec, failed
}

// recorderFailure is that of a run whose recorder refused or failed: its own, if it
// made one, as when it begins nothing more.
func recorderFailure(path string, err error) *Failure {
	failure := &Failure{Kind: kind.Recorder, Reason: err.Error(), Path: path, Cause: err}
	if own, ok := errors.AsType[*Failure](err); ok {
		failure.Kind, failure.Reason = own.Kind, own.Reason
	}
	return failure
}

// replay checks a record from earlier. One that is refused stops the run: whoever
// rescued it would go another way than the run that made it.
func (f *frame) replay(key Key, rec Record) (Record, error) {
	f.more().replayed = true
	if f.Wants(slog.LevelInfo) {
		f.tell(f.spec.name, key.Path, event.StepReplayed{Kind: key.Kind})
	}
	if rec.Unshared {
		f.unshare()
	}
	content, err := canon.Canonical(rec.Content)
	if rec.Failure == nil && err != nil {
		return rec, f.mismatch(key, "its content cannot be read: %w", err)
	}
	if rec.Kept != nil {
		if rec.Kept, err = canon.Canonical(rec.Kept); err != nil {
			return rec, f.mismatch(key, "what it kept cannot be read: %w", err)
		}
	}
	if rec.Content = content; rec.Seal() != rec.Sum {
		return rec, f.mismatch(key, "it was changed after it was made; remove it to do the work again")
	}
	if rec.Failure != nil {
		return rec, rec.failure()
	}
	return rec, nil
}

func (f *frame) mismatch(key Key, format string, args ...any) error {
	failure := Fail(kind.Replay, "the recorded "+key.Kind+" is refused: "+format, args...).(*Failure)
	failure.Path = key.Path
	return f.run.halt(failure)
}

// Seal returns what Sum has to be. The content must be canonical JSON.
func (rec Record) Seal() dag.ID {
	h := sha256.New()
	h.Write([]byte(rec.Type + "\x00"))
	if rec.Failure != nil {
		h.Write([]byte("failure\x00" + string(rec.Failure.Kind) + "\x00" + rec.Failure.Reason))
	} else {
		h.Write(rec.Content)
	}
	if rec.Kept != nil {
		h.Write([]byte("\x00kept\x00"))
		h.Write(timeless(rec.Kept))
	}
	return dag.ID(h.Sum(nil))
}

// failureRecord holds what is needed to return the same error again, as far as
// its text and its kind go: a body may make a text of its own around it.
func failureRecord(err error, at time.Time) Record {
	f := failureOf(err, "")
	rec := Record{Time: at, Failure: &dag.FailureContent{
		Kind: kind.Kind(strings.ToValidUTF8(string(f.Kind), "\uFFFD")), Reason: strings.ToValidUTF8(f.Reason, "\uFFFD"),
	}}
	rec.Meta = f.meta()
	if !retryable(err) {
		rec.Meta[finalMeta] = "true"
	}
	if _, ok := err.(*Failure); !ok {
		delete(rec.Meta, "path")
	}
	return rec
}

// failure returns the recorded error.
func (rec Record) failure() error {
	cause := &replayedError{rec.Failure.Kind, rec.Failure.Reason, rec.Meta["stack"], rec.Meta}
	if path, ok := rec.Meta["path"]; ok {
		return &Failure{Kind: cause.kind, Reason: cause.text, Path: path, Cause: cause}
	}
	return cause
}

type replayedError struct {
	kind        kind.Kind
	text, trace string
	meta        map[string]string
}

func (e *replayedError) Error() string        { return e.text }
func (e *replayedError) FailureKind() string  { return string(e.kind) }
func (e *replayedError) Is(target error) bool { return target == error(e.kind) }
func (e *replayedError) stack() string        { return e.trace }
func (e *replayedError) EndsRun() bool        { return e.meta[metaEndsRun] != "" }

// finalMeta notes that a failure is not retryable.
const finalMeta = "final"

// Retryable is false if it was for the error that was recorded.
func (e *replayedError) Retryable() bool { return e.meta[finalMeta] == "" }

// FailureMeta returns what was noted beside the failure; of that the path and the
// stack are noted anew, as those of the run.
func (e *replayedError) FailureMeta() map[string]string { return e.meta }

func (f *frame) recordLeaf(d dag.DAG) dag.DAG {
	return f.recordWork(f.key("leaf", d), d, func(own *frame) (Record, error) { return own.leafRecord(d) })
}

// leafRecord runs the body of a leaf.
func (f *frame) leafRecord(d dag.DAG) (Record, error) {
	n, err := f.attempts(d)
	if err != nil {
		return Record{}, err
	}
	return Record{Node: n, Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}, nil
}

// recordWork passes the work of a leaf through the recorder and returns d with the
// node that it makes.
func (f *frame) recordWork(key Key, d dag.DAG, work func(*frame) (Record, error)) dag.DAG {
	rec, err := f.record(key, work)
	if rec.Replayed {
		if lost := f.restoreGround(key, d, rec.Kept); lost != nil {
			err = lost
		}
	}
	if err != nil || !rec.Replayed {
		return f.settle(d, rec.Node, err)
	}
	_, full, err := f.grounds(d)
	if err != nil {
		return f.settle(d, nil, err)
	}
	n, err := dag.NewNode(dag.Spec{Type: rec.Type, Content: rec.Content, Parents: full.Next(), Meta: rec.Meta, Time: rec.Time})
	if err != nil {
		err = f.mismatch(key, "it makes no node: %w", err)
	}
	return f.settle(d, n, err)
}

func (f *frame) recordDecision(d dag.DAG) (any, error) {
	var choice any
	key := f.key("decision", d)
	rec, err := f.record(key, func(own *frame) (rec Record, err error) {
		if choice, err = own.decide(d); err != nil {
			return Record{}, err
		}
		return own.valueRecord(choice)
	})
	if err != nil || !rec.Replayed {
		return choice, err
	}
	choice, err = guarded(f, func(context.Context) (any, error) { return f.spec.decision.restore(rec.Content) })
	if err != nil {
		return nil, f.mismatch(key, "its value cannot be read: %w", err)
	}
	return choice, nil
}

// valueRecord is the record of a decision or a step.
func (f *frame) valueRecord(v any) (Record, error) {
	raw, err := canon.Append(nil, v)
	if err != nil {
		return Record{}, badContent(err)
	}
	return Record{Content: raw, Time: f.run.now()}, nil
}

func guarded[T any](f *frame, fn func(context.Context) (T, error)) (v T, err error) {
	defer f.caught(&err)
	return fn(f)
}
