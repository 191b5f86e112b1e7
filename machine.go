package stone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/kind"
)

// This file is the interpreter: it decides what runs next in every form.

// visit runs the ashlar of f on d, and returns d extended by the nodes of this visit. If the ashlar failed, a failure is in flight
// in the returned DAG.
func (r *run) visit(f *frame, d dag.DAG) dag.DAG {
	if d.InFlight() {
		return d
	}
	ended := f.started()
	switch {
	case f.spec.form != leafForm:
		d = r.compose(f, d)
	case f.spec.glue:
		d = f.work(d)
	default:
		d = f.leaf(d)
	}
	if ended != nil {
		ended(d)
	}
	return d
}

func (r *run) compose(f *frame, d dag.DAG) dag.DAG {
	switch f.spec.form {
	case seqForm:
		return r.sequence(f, d)
	case flowForm:
		return r.flow(f, d)
	case loopForm:
		return r.loop(f, d)
	case matchForm:
		return r.match(f, d)
	case mapForm:
		return r.mapItems(f, d)
	case parallelForm:
		return r.parallel(f, d)
	case reduceForm:
		return r.visit(f.child(innerSegment, 0), d.Reduce()).Reduced(d)
	case rescueForm:
		out := r.visit(f.child(childSegment, 0), d)
		if !out.InFlight() || f.over() != nil || errors.Is(out.Cause(), kind.Waiting) {
			return out
		}
		recorded, err := out.RecordFailure()
		if err != nil {
			return f.fail(out, err)
		}
		return r.visit(f.child(childSegment, 1), recorded)
	default:
		return r.scoped(f, d)
	}
}

// child returns a new frame for the i-th child.
func (f *frame) child(seg segment, i int) *frame {
	return f.below(f.spec.children[i].spec(), seg, i)
}

func (r *run) sequence(f *frame, d dag.DAG) dag.DAG {
	if len(f.spec.children) == 0 {
		return f.fail(d, Fail(kind.EmptySequence, "sequence %q has no steps", f.spec.name))
	}
	var frames []frame // frames of the next steps; allocated 16 at a time
	for i, c := range f.spec.children {
		if len(frames) == 0 {
			frames = make([]frame, min(16, len(f.spec.children)-i))
		}
		step := &frames[0]
		frames = frames[1:]
		step.stand(f, c.spec(), childSegment, i)
		if d = r.visit(step, d); d.InFlight() {
			break
		}
	}
	return d
}

func (r *run) loop(f *frame, d dag.DAG) dag.DAG {
	for i := range f.spec.max {
		round := f.below(f.spec, indexSegment, i)
		if d = r.visit(round.child(childSegment, 0), d); d.InFlight() {
			return d
		}
		done, err := round.choose(d)
		if err != nil {
			return f.fail(d, err)
		}
		if done == true {
			return d
		}
	}
	return f.fail(d, Fail(kind.LoopExhausted, "the condition did not hold after %d rounds", f.spec.max))
}

func (r *run) match(f *frame, d dag.DAG) dag.DAG {
	if d.Len() == 0 {
		return f.fail(d, Fail(kind.MatchFailed, "the DAG is empty: a match needs a node"))
	}
	key, err := f.choose(d)
	if err != nil {
		return f.fail(d, err)
	}
	for i, k := range f.spec.keys {
		if k == key {
			branch := f.below(f.spec, keySegment, i)
			return r.visit(branch.child(childSegment, i), d)
		}
	}
	return f.fail(d, Fail(kind.MatchFailed, "no branch for %.200s: have %.500s", key, fmt.Sprint(f.spec.keys)))
}

// inner runs a, a declared child of f, on behalf of the body of f. It returns d with the child's nodes, or with a failure in
// flight.
func (f *frame) inner(ctx context.Context, a Ashlar, d dag.DAG) dag.DAG {
	child, ok := f.spec.child(a)
	if !ok {
		return f.fail(d, Fail(kind.Error, "%q is not a child of this ashlar: name it in Scoped or Children", a.Name()))
	}
	out := f.within(ctx, child, d, func(next *frame) dag.DAG { return f.run.visit(next, d.Within(nil)) })
	f.more().reached.Store(&out)
	return out.Within(f)
}

// within calls run with a new frame below f for a visit of a. It fails if a visit of an ashlar with the same name is still running.
func (f *frame) within(ctx context.Context, a Ashlar, d dag.DAG, run func(*frame) dag.DAG) dag.DAG {
	visit, alone := f.names().enter(a.Name())
	if !alone {
		return f.fail(d, Fail(kind.Error, "%q is already running: give ashlars that run at the same time different names", a.Name()))
	}
	defer f.names().leave(a.Name())
	next := f.below(a.spec(), visitSegment, visit)
	next.Context = ctx
	return run(next)
}

// dynamic validates and runs p, an ashlar that was made during the run, on behalf of the body of f.
func (f *frame) dynamic(ctx context.Context, p Ashlar, d dag.DAG, grant []string) dag.DAG {
	f.unshare()
	if body, _ := bodyOf(f); body != nil {
		if now, declared := body.spec.child(p); declared {
			p = now
		}
	}
	return f.within(ctx, p, d, func(next *frame) dag.DAG {
		if granted := grants.Narrow(f.granted(), grant); granted != nil {
			next.more().grant = granted
		}
		within, err := accept(ctx, p, Config{Input: d, Grant: next.granted(), Policy: f.run.policy})
		if err != nil {
			return next.fail(d, err)
		}
		next.Context = within
		return f.run.visit(next, d)
	})
}

// granted returns the effects that are allowed at f, or nil if all are allowed.
func (f *frame) granted() []string {
	for ; f != nil; f = f.up {
		if x := f.extra.Load(); x != nil && x.grant != nil {
			return x.grant
		}
		if f.up == nil {
			return f.run.grant
		}
	}
	return nil
}

func (r *run) scoped(f *frame, d dag.DAG) dag.DAG {
	if err := f.over(); err != nil {
		return f.fail(d, err)
	}
	defer f.release()
	if f.recorded() {
		within := f.digest(d)
		f.more().digest = &within
	}
	out, err := f.scope(d.Within(f))
	out = out.Within(nil)
	switch {
	case err != nil:
		if reached := f.more().reached.Load(); !out.Extends(d) && reached != nil && reached.Extends(d) {
			out = *reached
		} else if !out.Extends(d) {
			out = d
		}
		return f.fail(out, f.interrupted(err))
	case !out.Extends(d):
		return f.fail(d, Fail(kind.BadContent, "the body returned a DAG that does not extend the one it was given"))
	case out.InFlight() && !errors.As(out.Cause(), new(*Failure)):
		return f.fail(out, failureIn(out.Latest(), out.Cause()))
	}
	return out
}

func (f *frame) scope(d dag.DAG) (out dag.DAG, err error) {
	defer f.caught(&err)
	return f.spec.scope(f, d)
}

// fail reports err to the watchers, and returns d with a failure for err in flight.
func (f *frame) fail(d dag.DAG, err error) dag.DAG {
	d, failure := f.inFlight(d, err)
	if f.Wants(slog.LevelError) {
		f.tell(f.spec.name, failure.Path, event.StepFailed{Kind: string(failure.Kind), Reason: failure.Reason})
	}
	return d
}

func (f *frame) inFlight(d dag.DAG, err error) (dag.DAG, *Failure) {
	failure, meta := f.run.cleaned(failureOf(err, f.path()))
	d = d.Within(nil).WithoutFailure()
	n := dag.NewFailure(d, dag.FailureContent{Kind: failure.Kind, Reason: failure.Reason}, meta, f.run.now())
	return d.WithFailure(n, failure), failure
}

// panicError is the error of a body that panicked.
type panicError struct {
	value any
	place string // file:line
	trace string
}

func panicked(value any) error { return &panicError{value, panics.Place(), string(debug.Stack())} }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v (%s)", p.value, p.place) }

func (p *panicError) FailureKind() string { return string(kind.Panic) }

func (p *panicError) stack() string { return p.trace }

func (p *panicError) Unwrap() error { err, _ := p.value.(error); return err }
