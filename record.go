package stone

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
)

// A Recorder remembers what a run has done. Every leaf, every decision and every
// Step goes through it. Its method is called from several goroutines at once,
// never twice at the same time for one key.
type Recorder interface {
	// Do returns what is recorded under the key, with Replayed set. If nothing
	// is, it calls work, records what that returns and returns it. An error of
	// work is returned as it is, and nothing is recorded. Any other error says
	// that the recorder itself failed; the step fails with it.
	Do(ctx context.Context, key Key, work func(context.Context) (Record, error)) (Record, error)
}

// A Key says under what a step is recorded. It is known before the work.
type Key struct {
	Run  string // the run
	Path string // the address in the tree; with Kind unique within the run
	Kind string // "leaf", "decision" or "step"
	Name string // of the ashlar, or of the step
	// Digest stands for the ashlar as far as it can be seen from outside, the
	// address, and the ids of what is read.
	Digest dag.ID
	// Reuse stands for the ashlar and the contents of what is read, so that
	// another run can have the same; zero unless the ashlar is Reusable.
	Reuse dag.ID
}

// A Record is what a step did.
type Record struct {
	// Node is the node of a leaf that succeeded; a replaying recorder may leave
	// it nil and fill in ID, Type, Content, Meta and Time.
	Node *dag.Node

	ID      dag.ID
	Type    string
	Content json.RawMessage // of the node, or the value of a decision or step
	Meta    map[string]string
	Time    time.Time

	// Failure is set if the step failed. Failures are recorded too, or a
	// resumed run could take another way.
	Failure *dag.FailureContent

	// Replayed reports that the record is from earlier.
	Replayed bool
}

func (f *frame) recordKey(kind, name string, d dag.DAG) Key {
	k := Key{Run: f.run.id, Path: f.path(), Kind: kind, Name: name}
	fingerprint := Ashlar{f.spec}.Fingerprint()
	within, across := sha256.New(), sha256.New()
	within.Write(fingerprint[:])
	within.Write([]byte(kind + "\x00" + k.Path + "\x00"))
	across.Write(fingerprint[:])
	for _, q := range f.spec.queries {
		id := q.Digest(d, false)
		within.Write(id[:])
		if f.spec.reusable {
			id = q.Digest(d, true)
			across.Write(id[:])
		}
	}
	k.Digest = dag.ID(within.Sum(nil))
	if f.spec.reusable {
		k.Reuse = dag.ID(across.Sum(nil))
	}
	return k
}

// record passes one thing to do through the recorder. A failure is recorded like
// a result; of a cancellation nothing is: the work did not come to its end.
func (f *frame) record(key Key, work func() (Record, error)) (Record, error) {
	var failed error
	rec, err := f.run.recorder.Do(f, key, func(context.Context) (Record, error) {
		rec, err := work()
		if err == nil || f.Context.Err() != nil {
			return rec, err
		}
		failed = err
		failure := failureOf(err, key.Path)
		return Record{Failure: &dag.FailureContent{Kind: failure.Kind, Reason: failure.Reason}, Time: f.run.now()}, nil
	})
	switch {
	case err != nil:
		return rec, err
	case rec.Replayed && f.logs(slog.LevelInfo):
		f.emit(slog.LevelInfo, "step-replayed", slog.String("ashlar-name", f.spec.name), slog.String("path", key.Path))
	case failed != nil && !rec.Replayed:
		return rec, failed
	}
	if rec.Failure != nil {
		return rec, &Failure{Kind: rec.Failure.Kind, Reason: rec.Failure.Reason}
	}
	return rec, nil
}

func (f *frame) recordLeaf(d dag.DAG) dag.DAG {
	rec, err := f.record(f.recordKey("leaf", f.spec.name, d), func() (Record, error) {
		n, err := f.attempts(d)
		if err != nil {
			return Record{}, err
		}
		return Record{Node: n, ID: n.ID(), Type: n.Type(), Content: n.Content(), Time: n.Time()}, nil
	})
	if err != nil {
		return f.settle(d, nil, err)
	}
	n, err := rec.node(d)
	return f.settle(d, n, err)
}

// node returns the recorded node as it stands in d. A node that was changed
// since gives another id, and is refused.
func (rec Record) node(d dag.DAG) (*dag.Node, error) {
	if rec.Node != nil {
		return rec.Node, nil
	}
	n, err := dag.NewNode(dag.Spec{Type: rec.Type, Content: rec.Content, Parents: d.Next(), Meta: rec.Meta, Time: rec.Time})
	if err != nil {
		return nil, Fail(kind.Replay, "the recorded node cannot be read: %w", err)
	}
	if n.ID() != rec.ID {
		return nil, Fail(kind.Replay, "the recorded %q node %.12s does not fit: here its content gives %.12s; the record was changed, or the run is another one", rec.Type, rec.ID, n.ID())
	}
	return n, nil
}

// valueRecord is the record of a decision or a step.
func (f *frame) valueRecord(v any) (Record, error) {
	raw, err := canon.Append(nil, v)
	if err != nil {
		return Record{}, badContent(err)
	}
	return Record{Content: raw, Time: f.run.now()}, nil
}

func (f *frame) recordDecision(d dag.DAG) (any, error) {
	var choice any
	rec, err := f.record(f.recordKey("decision", f.spec.name, d), func() (rec Record, err error) {
		if choice, err = f.decide(d); err != nil {
			return Record{}, err
		}
		return f.valueRecord(choice)
	})
	if err != nil || !rec.Replayed {
		return choice, err
	}
	choice, err = f.spec.decision.restore(rec.Content)
	if err != nil {
		return nil, Fail(kind.Replay, "the recorded decision cannot be read: %w", err)
	}
	return choice, nil
}

// Step does one recorded thing inside a body: if the run's recorder knows its
// result, fn is not called. Names may be used again one after the other; two
// steps of one name under way at the same time are an error, since a resumed run
// could not tell them apart. Outside of a run, Step calls fn.
func Step[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	var zero, v T
	f := frameOf(ctx)
	if f == nil {
		return fn(ctx)
	}
	visit, alone := f.names().enter(name)
	if !alone {
		return zero, Fail(kind.Error, "step %q is under way already: give steps that run at the same time different names", name)
	}
	defer f.names().leave(name)
	step := f.below(&spec{parts: parts{name: name, settings: settings{version: f.spec.version}}}, stepSegment, visit)
	step.Context = ctx
	defer step.release()
	if f.run.recorder == nil {
		return fn(step)
	}
	rec, err := step.record(step.recordKey("step", name, dag.DAG{}), func() (rec Record, err error) {
		if v, err = fn(step); err != nil {
			return Record{}, err
		}
		return step.valueRecord(v)
	})
	if err != nil || !rec.Replayed {
		return v, err
	}
	if err := json.Unmarshal(rec.Content, &v); err != nil {
		return zero, Fail(kind.Replay, "the recorded result of step %q cannot be read: %w", name, err)
	}
	return v, nil
}
