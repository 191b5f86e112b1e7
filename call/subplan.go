package call

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
)

// A bounding is a Planner that limits returned plans. Around returns a context in which plans run within these limits.
type bounding interface {
	Around(context.Context) context.Context
}

// runPlan checks and runs a plan that a capability returned. Out is the plan's emission. Ran is the DAG with the plan's nodes,
// which is kept if out is accepted.
func (l *lane) runPlan(e *entry, req *Request, reply *Reply, step string) (out JSON, ran dag.DAG, failure *Error, err error) {
	p, failure, err := l.compiled(e, req, reply, step)
	if failure != nil || err != nil {
		return nil, ran, failure, err
	}
	base, _ := l.ground()
	grant := append([]string{}, req.Effects...) // not nil, which would allow everything
	start, err := dag.Lane(base, 0)
	if err != nil {
		return nil, ran, nil, err
	}
	ctx := l.brought(req.enter(budget.With(l.ctx, l.account), stone.In(l.ctx).Path()), e)
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
		return JSON("null"), ran, nil, nil // the plan emitted nothing
	}
	if err != nil {
		return nil, ran, nil, err
	}
	return emitted.Content(), ran, nil, nil
}

// brought returns the context for a plan or pipeline with which e answered.
func (l *lane) brought(ctx context.Context, e *entry) context.Context {
	return marked.With(ctx, marked.Brought(ctx, e.ID, append([]string{}, e.Needs...), stone.Ashlar{}))
}

// failureOf turns the failure of a plan into an *Error. It returns an error instead if the lane was stopped or the plan is
// waiting for a person.
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
	failure.Record = nil // the Record belongs to a nested call
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

// keep adds the nodes of a plan beside the call's node, and returns the DAG on which the call's node is made.
func (s *session) keep(ctx context.Context, win *outcome) (dag.DAG, error) {
	if !win.planned {
		return s.dag, nil
	}
	return stone.In(ctx).Keep(s.base, win.lane)
}

// Apply is a tool that every Applicator has. Its input is {"plan": …, "bindings": {…}}; plan is a string in EDN or JSON, or data.
// It answers with that plan, which then runs like any returned plan: checked as a whole, within the limits of returned plans and
// the call's effects. The tool itself costs nothing.
const Apply = "stone/apply"

var applier = NewRegistry(Capability{
	Metadata: Metadata{ID: Apply, Kind: "plan", CanProduce: []string{Plan}},
	Invoke:   apply,
	Quote:    func(context.Context, *Request) budget.Quote { return budget.Quote{} },
	Bound:    func(context.Context, *Request) budget.Bound { return budget.Bound{} },
}).entry(Apply)

func apply(_ context.Context, req *Request) (*Reply, error) {
	var in struct{ Plan, Bindings JSON }
	if err := json.Unmarshal(req.Input, &in); err != nil {
		return nil, &Error{Type: reasons.InputInvalid, Where: "input", Message: "expected a map with plan and bindings: " + err.Error()}
	}
	reply := &Reply{Type: Plan, Plan: in.Plan, Bindings: in.Bindings}
	if text, ok := stringOf(in.Plan); ok {
		reply.Plan = []byte(text)
	} else if len(in.Plan) == 0 || in.Plan[0] != '{' {
		return nil, &Error{Type: reasons.InputInvalid, Where: "plan", Message: "expected a plan: its text, or a map with nodes"}
	}
	if in.Bindings != nil && in.Bindings[0] != '{' {
		return nil, &Error{Type: reasons.InputInvalid, Where: "bindings", Message: "expected a map from names to values"}
	}
	return reply, nil
}

// tool returns the tool with the given id, or nil if the id is unknown.
func (a *Applicator) tool(id string) *entry {
	if id == Apply {
		return applier
	}
	return a.Tools.entry(id)
}
