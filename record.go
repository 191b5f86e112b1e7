package stone

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// A RunRecorder is a step.Recorder that also records whole runs. One RunRecorder may serve several runs at once.
type RunRecorder interface {
	step.Recorder
	// OpenRun is called first by [Run], with the Config that Run was given. If it returns an error, Run
	// returns that error and a Result with the RunID and the Input of the record's Config.
	OpenRun(ctx context.Context, p Ashlar, cfg Config) (RunRecord, error)
}

// A RunRecord is a run that a [RunRecorder] has opened.
type RunRecord struct {
	// Config replaces the Config given to Run. It may, for example, contain a RunID, a recorded Input, a wrapped Frontend or
	// another Recorder. If that Recorder is a RunRecorder, its OpenRun is not called.
	Config Config
	// Begin is called once the pipeline has been validated with the Config, before any step starts. It returns the run's context,
	// derived from its argument. If it returns an error, no step starts. If Begin is nil, the context is unchanged.
	Begin func(context.Context) (context.Context, error)
	// End is called exactly once, with the result and the error of the run, even if the pipeline is invalid or Begin failed. Run
	// returns the error that End returns. If End is nil, Run returns the run's own error.
	End func(Result, error) error
}

// record passes one leaf, decision or step through the recorder. The work runs in its own frame, because a body's context ends
// before its result is recorded. A failure is recorded like a result. If the run has stopped or is waiting for an answer, nothing
// is recorded, since the work may be unfinished.
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
		if f.run.settles != nil {
			f.run.passDurable()
			if f.run.ctx.Err() != nil { // A watcher canceled the run before anything was spent.
				unfinished = stopped(f.run.ctx)
				return step.Record{}, budget.Costly(unfinished, budget.Usage{})
			}
		}
		own := at.below(f.spec, innerSegment, 0)
		defer own.release()
		own.Context = ctx
		own.more().digest = &key.Digest
		if twin := f.twin(); twin != nil {
			own.more().digest = twin
		}
		rec, err := work(own)
		if err != nil && (f.run.over() != nil || f.passing(err) || overtaken(f.Context)) {
			unfinished = err
			return step.Record{}, err
		}
		if failed = err; err != nil && rec.Failure == nil { // another process may have recorded a failure first
			rec = failureRecord(err, f.run.now())
		}
		if rec.Kept, err = f.groundRecord(failed != nil); err != nil {
			return step.Record{}, err
		}
		rec.Unshared = f.unsharedYet()
		rec.Sum = rec.Seal()
		return rec, nil
	}
	rec, err := f.ask(at, key, do)
	differs := rec.Differs || rec.Replayed && key.Kind == stepKind && rec.Path != "" && address.Last(rec.Path) != address.Last(key.Path)
	if differs && !f.ordered() {
		if differs = false; rec.Differs {
			key.Loose = true
			rec, err = f.ask(at, key, do)
		}
	}
	switch {
	case differs:
		return step.Record{}, f.mismatch(key, "it was recorded for another input than the %s now has: make the program deterministic again, resume with --force to keep the record, or with --again to repeat the work", key.Kind)
	case unfinished != nil:
		return step.Record{}, unfinished
	case err != nil && f.over() != nil: // the recorder was stopped too
		return step.Record{}, f.over()
	case err != nil:
		return step.Record{}, f.run.halt(recorderFailure(key.Path, err))
	case rec.Replayed:
		return f.replay(key, rec)
	}
	return rec, failed
}

// ask returns the record for key, from an earlier attempt in this process or from the run's recorder, which calls do if it has
// none.
func (f *frame) ask(at *frame, key step.Key, do func(context.Context) (step.Record, error)) (rec step.Record, err error) {
	defer at.caught(&err)
	recorder := f.run.recorder
	if recorder == nil { // only results of earlier attempts can be looked up
		recorder = forgetful{}
	}
	if tries := f.tries(); tries != nil {
		recorder = &retrying{tries, f.twin(), recorder}
	}
	return recorder.Do(at, key, do)
}

// recorded reports whether steps at f are recorded, either by the run's recorder or by a retried leaf around them.
func (f *frame) recorded() bool {
	return f.run.recorder != nil || f.tries() != nil
}

// ordered reports whether the work at f has a defined order among the Steps around it. The order is defined if the goroutine's
// stack contains the bodies of all enclosing Steps and of the leaf around them. The stack of a goroutine that a body has started
// does not contain that body. Lanes and bodies with a timeout run on their own goroutines and count as ordered. Reading a stack is
// slow, so ordered is called only if a record differs.
func (f *frame) ordered() bool {
	steps := 0
	for up := f.up; up != nil; up = up.up {
		if up.seg == stepSegment {
			steps++
		}
	}
	if steps == 0 && f.seg != stepSegment {
		return true
	}
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		at, more := frames.Next()
		switch name := strings.TrimPrefix(at.Function, "github.com/stonelayer/stone."); {
		case strings.HasPrefix(name, "given["):
			steps--
		case steps <= 0 && (name == "(*frame).call" || name == "(*run).scoped"), strings.Contains(name, "(*crew).hire."), strings.Contains(name, "(*frame).timed.func"):
			return true
		}
		if !more {
			return false
		}
	}
}

// ofStep reports whether f is inside a Step.
func (f *frame) ofStep() bool {
	for f != nil && f.seg == innerSegment {
		f = f.up
	}
	return f != nil && f.seg == stepSegment
}

// recorderFailure returns the failure of a run whose recorder returned err. If err is a *Failure, the result has its kind and
// reason; otherwise, the kind is kind.Recorder.
func recorderFailure(path string, err error) *Failure {
	failure := &Failure{Kind: kind.Recorder, Reason: err.Error(), Path: path, Cause: err}
	if own, ok := errors.AsType[*Failure](err); ok {
		failure.Kind, failure.Reason = own.Kind, own.Reason
	}
	return failure
}

// replay checks rec, a record from an earlier execution. If it rejects rec, it stops the run, because a Rescue would take a path
// that the recorded run did not take.
func (f *frame) replay(key step.Key, rec step.Record) (step.Record, error) {
	f.more().replayed = true
	if !f.spec.glue && f.Wants(slog.LevelInfo) {
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
			return rec, f.mismatch(key, "its kept nodes cannot be read: %w", err)
		}
	}
	if rec.Content = content; rec.Seal() != rec.Sum {
		return rec, f.mismatch(key, "it was changed after it was recorded: remove it to repeat the work")
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

// failureRecord returns the record of err. The text and the kind stay unchanged, because a body may build its own text from them.
func failureRecord(err error, at time.Time) step.Record {
	f := rawFailure(err, "")
	rec := step.Record{Time: at, Failure: &dag.FailureContent{
		Kind: kind.Kind(strings.ToValidUTF8(string(f.Kind), "\uFFFD")), Reason: strings.ToValidUTF8(f.Reason, "\uFFFD"),
	}}
	rec.Meta = f.meta()
	if !fault.Retryable(err) {
		rec.Meta[finalMeta] = "true"
	}
	if _, ok := err.(*Failure); !ok {
		delete(rec.Meta, "path")
	}
	return rec
}

// recordedFailure returns the error that rec contains.
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

// finalMeta is the meta key of failures that are not retryable.
const finalMeta = "final"

// Retryable returns false if the recorded error was not retryable.
func (e *replayedError) Retryable() bool { return e.meta[finalMeta] == "" }

// FailureMeta returns the recorded meta of the failure. The run replaces the path and the stack in it.
func (e *replayedError) FailureMeta() map[string]string { return e.meta }

func (f *frame) recordLeaf(d dag.DAG) dag.DAG {
	return f.recordWork(f.key("leaf", d), d, func(own *frame) (step.Record, error) {
		if n, err := own.earlier(d); n != nil || err != nil {
			return leafRecord(n, err)
		}
		return leafRecord(own.attempts(d))
	})
}

// earlier returns the node that a leaf with effects created from the same contents in an earlier run that the context provides; see
// package past. It returns nil if there is no such node. An error means that the leaf must not run. For agents and calls, earlier
// returns nil, because each of their steps is looked up instead.
func (f *frame) earlier(d dag.DAG) (*dag.Node, error) {
	if len(f.spec.effects) == 0 || f.spec.detail != nil || f.spec.question != nil {
		return nil, nil
	}
	r := past.Of(f)
	if r == nil {
		return nil, nil
	}
	n, err := r.LeafAt(f, f.path(), f.spec.effects, func(before dag.DAG) bool {
		return !slices.ContainsFunc(f.spec.queries, func(q dag.Query) bool { return q.Digest(d, true) != q.Digest(before, true) })
	})
	if n == nil || err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: n.Type(), Content: n.Content(), Parents: d.Next(), Meta: map[string]string{terms.From: r.ID}, Time: n.Time()})
}

// leafRecord returns the record of a leaf whose body returned n and err.
func leafRecord(n *dag.Node, err error) (step.Record, error) {
	if err != nil {
		return step.Record{}, err
	}
	return step.Record{Node: n, Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}, nil
}

// recordWork passes the work of a leaf through the recorder, and returns d with the leaf's node or failure added.
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

// valueRecord returns the record of a decision or step with the value v.
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

// forgetful is a Recorder that records nothing.
type forgetful struct{}

func (forgetful) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return work(ctx)
}
