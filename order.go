package stone

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

func (t task) Order(d dag.DAG) (step.Order, error) {
	f := t.f
	for ; f.up != nil; f = f.up {
		switch f.seg {
		case stepSegment, attemptSegment:
			return step.Order{}, step.ErrLocal
		case visitSegment:
			if f.up.spec.form != scopedForm {
				return step.Order{}, step.ErrLocal
			}
			if child, ok := f.up.spec.child(Ashlar{f.spec}); !ok || child.s != f.spec {
				return step.Order{}, step.ErrLocal
			}
		}
	}
	return step.Order{
		Key: t.f.key("leaf", d), Pipeline: Ashlar{f.spec}.Fingerprint(),
		Reads: dag.NewExcerpt(d, t.f.spec.reads()...), Grant: t.f.granted(),
	}, nil
}

func (t task) DoBy(d dag.DAG, perform func(context.Context, step.Order) (step.Record, error)) dag.DAG {
	order, err := t.Order(d)
	if err != nil {
		return t.Do(d)
	}
	f := t.f
	return f.recordWork(order.Key, d, func(own *frame) (step.Record, error) {
		rec, err := perform(own, order)
		rec.Remote = true
		switch {
		case errors.Is(err, step.ErrLocal):
			return leafRecord(own.attempts(d))
		case err != nil && (f.over() != nil || errors.Is(err, kind.Waiting)):
			return step.Record{}, err
		case err != nil:
			return step.Record{}, f.run.halt(&Failure{Kind: kind.Executor, Reason: err.Error(), Path: order.Key.Path, Cause: err})
		case rec.Failure != nil:
			return rec, recordedFailure(rec)
		}
		if rec.Node, err = remade(&rec, d); err != nil {
			return step.Record{}, f.run.halt(&Failure{Kind: kind.Executor, Reason: err.Error(), Path: order.Key.Path, Cause: err})
		}
		return rec, nil
	})
}

// remade makes, on d, the node of a record from another process.
func remade(rec *step.Record, d dag.DAG) (*dag.Node, error) {
	content, err := canon.Canonical(rec.Content)
	if err != nil {
		return nil, fmt.Errorf("the record cannot be read: %w", err)
	}
	if rec.Content = content; rec.Seal() != rec.Sum || rec.Kept != nil {
		return nil, errors.New("the record was changed in transit")
	}
	return dag.NewNode(dag.Spec{Type: rec.Type, Content: rec.Content, Parents: d.Next(), Meta: rec.Meta, Time: rec.Time})
}

// Perform does the work of a leaf for a run in another process. It finds the leaf by
// its address in p, checks that the leaf and its input match the order, and returns
// the record of the leaf. If the leaf failed, the record has a Failure. Cfg sets the
// Recorder for the steps of the body and the record, the Frontend and the clock of
// this process. Its Input, Grant, RunID and Executor are ignored.
//
// The error is step.ErrLocal if the leaf needs the process of its run, is
// kind.Waiting if a question waits for its answer, and is a *Failure otherwise: of
// kind "replay-mismatch" if p is another version of the pipeline.
func Perform(ctx context.Context, p Ashlar, order step.Order, cfg Config) (step.Record, error) {
	d := order.Reads.DAG()
	cfg.Input, cfg.Grant, cfg.RunID, cfg.Executor = d, order.Grant, order.Key.RunID, nil
	if cfg.Recorder == nil {
		cfg.Recorder = forgetful{}
	}
	r := newRun(ctx, cfg)
	r.apart = true
	f, err := r.enter(p, order.Key.Path)
	if err != nil {
		return step.Record{}, err
	}
	key := f.key("leaf", d)
	if key.Digest != order.Key.Digest {
		return step.Record{}, f.another("it is another version of the leaf, or it reads something else: run the same program in all processes")
	}
	key.Reuse, key.Fresh = order.Key.Reuse, order.Key.Fresh // it may cover the items of lanes
	rec, err := f.record(key, func(own *frame) (step.Record, error) {
		rec, err := leafRecord(own.attempts(d))
		if over := r.halted.Load(); over != nil { // whatever the body returned
			return step.Record{}, *over
		}
		return rec, err
	})
	if err != nil && rec.Failure == nil {
		return step.Record{}, err
	}
	return rec, nil
}

// forgetful is a Recorder that records nothing.
type forgetful struct{}

func (forgetful) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return work(ctx)
}

// local stops the work and returns an error if the run is in another process: only
// that process can do what the body asks for.
func (f *frame) local() error {
	if f.run.apart {
		return f.run.halt(step.ErrLocal)
	}
	return nil
}

func (f *frame) another(why string) error {
	return &Failure{Kind: kind.Replay, Reason: "the order does not match this pipeline: " + why, Path: f.path()}
}

// enter makes the frames on the way from p to the leaf with the address.
func (r *run) enter(p Ashlar, path string) (*frame, error) {
	root := &frame{Context: r.ctx, run: r, spec: p.spec()}
	var f *frame
	for segment := range address.Segments(path) {
		s := address.Parse(segment)
		if f == nil {
			f = root
		} else if f = f.find(s); f == nil {
			return nil, root.another(fmt.Sprintf("there is nothing at %q", path))
		}
		for f.spec.form == reduceForm {
			f = f.child(innerSegment, 0)
		}
		for _, m := range s.Marks {
			if m.Kind == address.Index {
				f = f.mark(m)
			}
		}
	}
	if f == nil || f.path() != path || f.spec.form != leafForm {
		return nil, root.another(fmt.Sprintf("there is no leaf at %q", path))
	}
	return f, nil
}

// mark makes the frame of a round, a lane or a branch.
func (f *frame) mark(m address.Mark) *frame {
	if f.spec.form != matchForm {
		return f.below(f.spec, indexSegment, max(0, m.Number))
	}
	for i, key := range f.spec.keys {
		if key == m.Text {
			return f.below(f.spec, keySegment, i)
		}
	}
	return f
}

// find makes the frame of the child that a segment names, or returns nil.
func (f *frame) find(s address.Segment) *frame {
	if f.spec.form == scopedForm {
		visit := 1
		for _, m := range s.Marks {
			if m.Kind == address.Visit {
				visit = m.Number
			}
		}
		for _, c := range f.spec.children {
			if c.Name() == s.Name {
				return f.below(c.spec(), visitSegment, visit)
			}
		}
		return nil
	}
	for i, c := range f.spec.children {
		elsewhere := (f.seg == keySegment || f.seg == indexSegment && f.spec.form == parallelForm) && i != int(f.index)
		switch {
		case elsewhere:
		case c.IsGlue():
			if found := f.child(childSegment, i).findWithin(s); found != nil {
				return found
			}
		case c.Name() == s.Name && f.spec.occurrence(i) == s.Occurrence:
			return f.child(childSegment, i)
		}
	}
	return nil
}

// findWithin is find for glue, whose branches have no mark in addresses.
func (f *frame) findWithin(s address.Segment) *frame {
	if f.spec.form != matchForm {
		return f.find(s)
	}
	for i := range f.spec.children {
		if found := f.below(f.spec, keySegment, i).find(s); found != nil {
			return found
		}
	}
	return nil
}
