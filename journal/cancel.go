package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/kind"
)

// A StateError reports that a run cannot be canceled in its current state.
type StateError struct {
	Run   string
	State State
}

// Error returns a message that names the run and its state.
func (e *StateError) Error() string {
	return fmt.Sprintf("run %s is %s: only a waiting, stopped, interrupted or refused run can be canceled here", e.Run, e.State)
}

// Cancel cancels a run that no process holds, that is, a waiting or refused run or a run whose process was stopped or died. It does
// not need the pipeline. Results and open questions are kept, so the run can be resumed. Workers start no more costly steps for the
// run. Cancel also cancels the run's children in the same journal (see Elsewhere), but not batches at providers: use batch.Cancel
// for these. If there is no such run, the error is ErrNoRun; if a process holds the run, a *HeldError; and if the run has ended or
// is damaged, a *StateError.
func Cancel(ctx context.Context, j Journal, run string) error {
	info, err := j.Find(ctx, run)
	if err == nil && info.ID != run {
		err = fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	if err == nil {
		info, err = j.Acquire(ctx, run)
	}
	if err != nil {
		return err
	}
	if err = endCanceled(ctx, j, run, info); err != nil {
		err = errors.Join(err, j.Release(run))
	}
	return err
}

// endCanceled ends a run that this process holds.
func endCanceled(ctx context.Context, j Journal, run string, info RunInfo) error {
	switch info.State {
	case Done, Failed, Canceled, Damaged:
		return &StateError{run, info.State}
	}
	if info.Started.IsZero() {
		return fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	o := info.Outcome
	o.State, o.Ended = Canceled, time.Now()
	o.Failure = &Failure{Kind: string(kind.Canceled), Reason: "the run was canceled"}
	var err error
	if o.DAG, err = j.DAG(ctx, run); err != nil {
		return err
	}
	steps, err := j.Steps(ctx, run)
	if err != nil {
		return err
	}
	o.Steps, o.Usage = Total(steps)
	if err := j.End(context.WithoutCancel(ctx), run, o); err != nil {
		return err
	}
	children, err := Children(ctx, j, run)
	for _, c := range children {
		other := Cancel(ctx, j, c.ID)
		if !errors.As(other, new(*HeldError)) && !errors.As(other, new(*StateError)) { // the child's holder will notice that the parent is gone
			err = errors.Join(err, other)
		}
	}
	return err
}
