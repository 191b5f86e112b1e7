package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// Children returns a starter for journal.Elsewhere that starts child runs in a pool of workers. Parents and children must be in
// the same journal, and the pool's workers must have the pipelines of the children.
func Children(c client.Client, j journal.Journal, pool string) journal.Starter {
	return &children{c, j, pool}
}

type children struct {
	client  client.Client
	journal journal.Journal
	pool    string
}

// Start implements [journal.Starter].
func (s *children) Start(ctx context.Context, c journal.Child) error {
	info, err := find(ctx, s.journal, c.ID)
	switch {
	case errors.Is(err, journal.ErrNoRun):
	case err != nil:
		return err
	case info.State == journal.Done || info.State == journal.Waiting:
		return nil
	}
	input, err := tree.ReadInput(ctx, c.Pipeline, c.Input)
	if err != nil {
		return err
	}
	return start(ctx, s.client, s.journal, Run{ID: c.ID, Pipeline: c.Pipeline, Input: input, Pool: s.pool, Labels: c.Labels}, source{Grant: c.Grant, Limits: c.Limits})
}

// Wait implements [journal.Starter]. It reads the journal, because only the journal knows whether a run is waiting.
func (s *children) Wait(ctx context.Context, c journal.Child) (st journal.ChildState, err error) {
	const shortest, longest, lost = 50 * time.Millisecond, 2 * time.Second, time.Minute
	began, idle := time.Now(), time.Now()
	for {
		info, err := find(ctx, s.journal, c.ID)
		if err != nil && !errors.Is(err, journal.ErrUnavailable) {
			return st, err
		}
		switch {
		case err != nil:
		case info.State == journal.Running:
			idle = time.Now()
		case ended(info.State):
			return s.state(ctx, info)
		case time.Since(idle) > lost: // for example, because somebody has terminated the workflow
			if err := s.Start(ctx, c); err != nil {
				return st, err
			}
			idle = time.Now()
		}
		select {
		case <-time.After(min(max(time.Since(began)/10, shortest), longest)):
		case <-ctx.Done():
			return st, context.Cause(ctx)
		}
	}
}

func ended(s journal.State) bool {
	switch s {
	case journal.Done, journal.Failed, journal.Canceled, journal.Waiting, journal.Damaged:
		return true
	}
	return false
}

// state returns the state of a child that has ended or is waiting, in the form that its parent receives.
func (s *children) state(ctx context.Context, info journal.RunInfo) (st journal.ChildState, err error) {
	st = journal.ChildState{State: info.State, Failure: info.Failure, Usage: info.Usage}
	switch info.State {
	case journal.Done:
		n, err := s.journal.Node(ctx, info.ID, info.Node.String())
		st.Result = n.Content
		return st, err
	case journal.Waiting:
		all, err := s.journal.Questions(ctx, info.ID)
		for _, q := range all {
			if q.Open() {
				st.Questions = append(st.Questions, q)
			}
		}
		return st, err
	}
	return st, nil
}

// Answer implements [journal.Starter].
func (s *children) Answer(ctx context.Context, c journal.Child, path string, a ask.Answer) error {
	err := Answer(ctx, s.client, s.journal, s.pool, c.ID, path, a)
	if errors.Is(err, journal.ErrNoQuestion) { // an earlier process has already passed on the answer
		_, err = s.client.SignalWithStartWorkflow(ctx, c.ID, answered, nil, startOptions(c.ID, s.pool, source{}.Rank), runWorkflow, c.ID)
	}
	return err
}

// Cancel implements [journal.Starter]. It notifies the worker that holds the run, and the worker cancels the run. If no process
// holds the run, Cancel cancels the run in the journal.
func (s *children) Cancel(ctx context.Context, id string) error {
	err := s.client.CancelWorkflow(ctx, id, "")
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		err = nil
	}
	other := journal.Cancel(ctx, s.journal, id)
	if errors.Is(other, journal.ErrNoRun) || errors.As(other, new(*journal.HeldError)) || errors.As(other, new(*journal.StateError)) {
		other = nil
	}
	return errors.Join(err, other)
}

// errOrphan is the reason why a child run ends whose parent is gone.
var errOrphan = errors.New("its parent was canceled or removed")

// orphan reports whether a run is a child whose parent was canceled or removed.
func (w Worker) orphan(ctx context.Context, info journal.RunInfo) bool {
	parent := info.Labels[journal.Parent]
	if parent == "" {
		return false
	}
	up, err := find(ctx, w.Journal, parent)
	return errors.Is(err, journal.ErrNoRun) || err == nil && up.State == journal.Canceled
}

// watched returns a context that is cancelled when the run has become an orphan.
func (w Worker) watched(ctx context.Context, info journal.RunInfo) context.Context {
	if info.Labels[journal.Parent] == "" {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for !w.orphan(ctx, info) {
			select {
			case <-time.After(15 * time.Second):
			case <-ctx.Done():
				cancel(nil)
				return
			}
		}
		cancel(stone.Fail(kind.Canceled, "%w", errOrphan))
	}()
	return ctx
}

// bounded applies the limits and the grant with which a child was started.
func (s source) bounded(ctx context.Context, cfg *stone.Config) context.Context {
	cfg.Grant = grants.Narrow(cfg.Grant, s.Grant)
	if s.Limits != (budget.Limits{}) {
		ctx = budget.With(ctx, budget.From(ctx).Sub(s.Limits))
	}
	return ctx
}
