package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/kind"
)

// This file tracks the children of a run. The runner is nil in a run without a journal.

// runnerIn returns the runner of the step to which ctx belongs, or nil if there is none.
func runnerIn(ctx context.Context) *runner {
	if t := troubleIn(ctx); t != nil {
		return t.recorder.runner
	}
	return nil
}

// step returns the step identified by the parameter of, if an earlier process left it unfinished, and otherwise the zero Step.
func (r *runner) step(ctx context.Context, of body) (Step, error) {
	if r == nil || !r.resumed {
		return Step{}, nil
	}
	r.open.mu.Lock()
	defer r.open.mu.Unlock()
	if r.open.steps == nil { // at this point, no step of a child is from this process
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return Step{}, err
		}
		r.open.steps = map[body]Step{}
		for _, s := range steps {
			if s.Kind == "step" && !s.Recorded {
				r.open.steps[bodyOf(s.Path, s.Name)] = s
			}
		}
	}
	return r.open.steps[of], nil
}

// child records that a step is waiting for the child with the given ID, until the returned function is called.
func (r *runner) child(id string, at Starter) (over func()) {
	if r == nil {
		return func() {}
	}
	r.children.Store(id, at)
	return func() {
		if !r.ending() {
			r.children.Delete(id)
		}
	}
}

// ending reports whether the whole run is ending, or is being stopped in this process.
func (r *runner) ending() bool { return r != nil && r.life != nil && r.life.Err() != nil }

// cancelChildren cancels the children for which the run was waiting when it was canceled.
func (r *runner) cancelChildren(ctx context.Context) (err error) {
	for id, at := range r.children.Range {
		err = errors.Join(err, at.(Starter).Cancel(ctx, id.(string)))
	}
	return err
}

// whileUndrained returns a context that is done when ctx is done or the run is drained. A step that is waiting for a child can
// stop immediately without losing any work.
func (r *runner) whileUndrained(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if r != nil && r.opts.Drain != nil {
		go func() {
			select {
			case <-r.opts.Drain:
				cancel(stone.Fail(kind.Canceled, "%w", ErrDrained))
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// drained returns ErrDrained if the run is being drained, so that the step records no result, and otherwise err.
func (r *runner) drained(ctx context.Context, err error) error {
	if why := context.Cause(ctx); errors.Is(why, ErrDrained) {
		troubleIn(ctx).note(why)
		return why
	}
	return err
}

// Children returns the runs that a run has started with [Elsewhere]: first the children in the same journal, oldest first, then all
// others. For a child in a different journal, RunInfo contains only the ID, the state, the times, the usage, and the kind and
// reason of a failure.
func Children(ctx context.Context, j Journal, run string) ([]RunInfo, error) {
	all, err := childrenIn(ctx, j, run)
	if err != nil {
		return nil, err
	}
	here := len(all)
	for s, err := range j.EachStep(ctx, run) {
		if err != nil {
			return nil, err
		}
		if s.Kind != "step" || !strings.HasPrefix(s.Name, childPrefix) || slices.ContainsFunc(all[:here], func(c RunInfo) bool { return strings.HasSuffix(c.ID, s.Name) }) {
			continue
		}
		c := RunInfo{ID: s.Name, Labels: map[string]string{Parent: run}, Started: s.Started, Outcome: Outcome{State: Running, Ended: s.Ended, Usage: budget.Total{Usage: s.Usage, Possible: s.Possible}}}
		switch {
		case s.Failure != "":
			c.State, c.Failure = Failed, &Failure{Kind: s.Failure, Reason: s.Reason}
		case s.Recorded:
			c.State = Done
		}
		all = append(all, c)
	}
	return all, nil
}

func childrenIn(ctx context.Context, j Journal, run string) ([]RunInfo, error) {
	return every(ctx, j, Query{Labels: map[string]string{Parent: run}})
}

// inherit copies the parent's budgets to info, which describes a child, if the child has none and the parent is in the same
// journal.
func (r *runner) inherit(ctx context.Context, info *RunInfo) error {
	id := info.Labels[Parent]
	if id == "" || info.Budgets != nil {
		return nil
	}
	parent, err := r.journal.Find(ctx, id)
	if errors.Is(err, ErrNoRun) || errors.As(err, new(*AmbiguousError)) || err == nil && parent.ID != id {
		return nil
	}
	info.Account, info.Budgets = cmp.Or(info.Account, parent.Account), parent.Budgets
	return err
}

// RemoveChildren removes the children of a removed run. It skips children that a process holds, because that process will notice
// that the parent is gone. RemoveChildren is meant for implementations of Journal.
func RemoveChildren(ctx context.Context, j Journal, run string) error {
	children, err := childrenIn(ctx, j, run)
	if err != nil {
		return fmt.Errorf("list the children of run %q: %w", run, err)
	}
	for _, c := range children {
		if err := j.Remove(ctx, c.ID); err != nil && !errors.Is(err, ErrNoRun) && !errors.As(err, new(*HeldError)) {
			return fmt.Errorf("child %q: %w", c.ID, err)
		}
	}
	return nil
}
