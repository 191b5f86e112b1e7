package call

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/marks"
)

// A bounding Planner limits the plans that it runs.
type bounding interface {
	Around(context.Context) context.Context
}

// runPlan checks and runs a plan that a capability returned. Out is the emission of the
// plan. Ran is the DAG with the nodes of the plan, which is kept if out is accepted.
func (l *lane) runPlan(e *entry, req *Request, reply *Reply, step string) (out JSON, ran dag.DAG, failure *Error, err error) {
	p, failure, err := l.compiled(req, reply, step)
	if failure != nil || err != nil {
		return nil, ran, failure, err
	}
	base, _ := l.ground()
	grant := append([]string{}, req.Effects...) // not nil, which would be everything
	start, err := dag.Lane(base, 0)
	if err != nil {
		return nil, ran, nil, err
	}
	ctx := req.enter(budget.With(l.ctx, l.account), stone.In(l.ctx).Path())
	ctx = marks.With(ctx, marks.Brought(ctx, e.ID, append([]string{}, e.Needs...), stone.Ashlar{}))
	if p, ok := l.app.Plans.(bounding); ok {
		ctx = p.Around(ctx)
	}
	ran = stone.In(ctx).RunDynamic(stone.Seq("plan of "+step, p), start, grant)
	if ran.InFlight() {
		failure, err = l.failureOf(ran.Cause())
		return nil, ran, failure, err
	}
	emitted, err := ran.Nearest(terms.Emit)
	before, _ := base.Nearest(terms.Emit)
	if errors.Is(err, dag.ErrMissing) || err == nil && before != nil && emitted.ID() == before.ID() {
		return JSON("null"), ran, nil, nil // it emitted nothing
	}
	if err != nil {
		return nil, ran, nil, err
	}
	return emitted.Content(), ran, nil, nil
}

// failureOf turns the failure of a plan into an *Error. It returns an error instead if
// the lane was stopped or the plan waits for a person.
func (l *lane) failureOf(err error) (*Error, error) {
	switch {
	case l.ctx.Err() != nil:
		return nil, context.Cause(l.ctx)
	case errors.Is(err, kind.Waiting):
		return nil, err
	}
	if refused := (*stone.Invalid)(nil); errors.As(err, &refused) {
		return &Error{Type: reasons.PlanInvalid, Message: refused.Error(), Cause: err}, nil
	}
	failure := *errorOf(err)
	failure.Record = nil // it belongs to a call within
	return &failure, nil
}

// ground returns the DAG on which plans run: all nodes before the call, or an origin
// node.
func (s *session) ground() (dag.DAG, error) {
	s.awaited.Do(func() {
		if s.dag, s.groundErr = stone.In(s.ctx).Await(s.dag); s.groundErr == nil {
			s.base, s.groundErr = dag.Origin(s.dag)
		}
	})
	return s.base, s.groundErr
}

// keep adds the nodes of a plan beside the node of the call, and returns the DAG on which
// that node is made.
func (s *session) keep(ctx context.Context, win *outcome) (dag.DAG, error) {
	if !win.planned {
		return s.dag, nil
	}
	return stone.In(ctx).Keep(s.base, win.lane)
}
