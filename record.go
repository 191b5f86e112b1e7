package stone

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// runWrapper is a step.Recorder that also keeps runs as a whole.
type runWrapper interface {
	WrapRun(ctx context.Context, p Ashlar, cfg Config, run func(context.Context, Config) (Result, error)) (Result, error)
}

// record passes one thing to do through the recorder. Work gets a frame of its
// own, since the context of a body ends before its result is recorded. A failure
// is recorded like a result; when the run is over or waits for an answer nothing
// is, since the work may not have come to its end.
func (f *frame) record(key step.Key, work func(*frame) (step.Record, error)) (step.Record, error) {
	if err := f.run.over(); err != nil {
		return step.Record{}, err
	}
	if overtaken(f.Context) {
		return step.Record{}, f.over()
	}
	at := f.below(f.spec, innerSegment, 0)
	defer at.release()
	var failed, unfinished error
	do := func(ctx context.Context) (step.Record, error) {
		own := at.below(f.spec, innerSegment, 0)
		defer own.release()
		own.Context = ctx
		own.more().digest = &key.Digest
		rec, err := work(own)
		if err != nil && (f.run.over() != nil || f.passing(err) || overtaken(f.Context)) {
			unfinished = err
			return step.Record{}, err
		}
		if failed = err; err != nil && rec.Failure == nil { // which has one if it comes from elsewhere
			rec = failureRecord(err, f.run.now())
		}
		if rec.Kept, err = f.groundRecord(failed != nil); err != nil {
			return step.Record{}, err
		}
		rec.Unshared = f.unsharedYet()
		rec.Sum = rec.Seal()
		return rec, nil
	}
	recorder := f.run.recorder
	if recorder == nil { // for work that is done elsewhere, see DoBy
		recorder = forgetful{}
	}
	rec, err := guarded(at, func(context.Context) (step.Record, error) { return recorder.Do(at, key, do) })
	switch {
	case unfinished != nil:
		return step.Record{}, unfinished
	case err != nil && f.over() != nil: // the recorder was told to stop too
		return step.Record{}, f.over()
	case err != nil:
		return step.Record{}, f.run.halt(recorderFailure(key.Path, err))
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
func (f *frame) replay(key step.Key, rec step.Record) (step.Record, error) {
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
		return rec, recordedFailure(rec)
	}
	return rec, nil
}

func (f *frame) mismatch(key step.Key, format string, args ...any) error {
	failure := Fail(kind.Replay, "the recorded "+key.Kind+" is refused: "+format, args...).(*Failure)
	failure.Path = key.Path
	return f.run.halt(failure)
}

// failureRecord holds what is needed to return the same error again, as far as
// its text and its kind go: a body may make a text of its own around it.
func failureRecord(err error, at time.Time) step.Record {
	f := failureOf(err, "")
	rec := step.Record{Time: at, Failure: &dag.FailureContent{
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

// recordedFailure returns the recorded error.
func recordedFailure(rec step.Record) error {
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
	return f.recordWork(f.key("leaf", d), d, func(own *frame) (step.Record, error) { return own.leafRecord(d) })
}

// leafRecord runs the body of a leaf.
func (f *frame) leafRecord(d dag.DAG) (step.Record, error) {
	n, err := f.attempts(d)
	if err != nil {
		return step.Record{}, err
	}
	return step.Record{Node: n, Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}, nil
}

// recordWork passes the work of a leaf through the recorder and returns d with the
// node that it makes.
func (f *frame) recordWork(key step.Key, d dag.DAG, work func(*frame) (step.Record, error)) dag.DAG {
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
	rec, err := f.record(key, func(own *frame) (rec step.Record, err error) {
		if choice, err = own.decide(d); err != nil {
			return step.Record{}, err
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
func (f *frame) valueRecord(v any) (step.Record, error) {
	raw, err := canon.Append(nil, v)
	if err != nil {
		return step.Record{}, badContent(err)
	}
	return step.Record{Content: raw, Time: f.run.now()}, nil
}

func guarded[T any](f *frame, fn func(context.Context) (T, error)) (v T, err error) {
	defer f.caught(&err)
	return fn(f)
}
