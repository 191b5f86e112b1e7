package call

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
)

// A Guide tells a model how to write a plan as its answer.
type Guide struct {
	// Brief explains plans and lists what this plan may use: operations, slots, intents, effects and the remaining budget. Whole
	// adds every field, for a model that requests this text.
	Brief, Whole string
	// Refuse returns an error that says why a plan cannot run, with all findings in the details, or nil if the plan can run. The
	// call sets Refuse for a plan that is the reply.
	Refuse func(plan []byte) *Error
	// Tell returns text for the model that wrote a rejected plan: every finding with its place and a suggestion. The text ends
	// with a line break, so an instruction can follow.
	Tell func(plan []byte, findings stone.Findings) string
}

// A guiding is a Planner that can tell models how to write a plan.
type guiding interface {
	Guide(app *Applicator, req *Request, d dag.DAG, passed []dag.Query) *Guide
}

// A validating is a Planner that can check a plan before it is known where the plan will run.
type validating interface {
	Valid(app *Applicator, plan []byte, d dag.DAG, grant []string) *Error
}

// guide returns the guide for a request that wants a plan, either as its reply or as a value that must pass the check plan-valid.
// For any other request, it returns nil. A plan reads the whole DAG, so every earlier step must have ended.
func (l *lane) guide(e *entry, req *Request) (*Guide, error) {
	planner, ok := l.app.Plans.(guiding)
	if !ok || l.turn != nil || req.Requires.Reply != Plan && !slices.Contains(req.Done.Must, planValid) {
		return nil, nil
	}
	base, err := l.ground()
	if err != nil {
		return nil, err
	}
	left := *req
	left.Budget = l.account.Left()
	if req.Requires.Reply != Plan { // a value's effects depend on the node that applies it
		left.Effects = stone.In(l.ctx).Grant()
	}
	g := planner.Guide(l.app, &left, base, dag.Types(l.spec.reads()...))
	if g.Refuse != nil && req.Requires.Reply != Plan {
		return g, nil
	}
	g.Refuse = func(text []byte) *Error {
		_, failure, err := l.compiled(e, req, &Reply{Type: Plan, Plan: text}, "")
		if err != nil {
			return nil // the run is over
		}
		return failure
	}
	return g, nil
}

// compiled checks the plan of a reply and compiles it, but only once. If step is not empty, it sends the outcome to watchers. An
// error means that the lane was stopped.
func (l *lane) compiled(e *entry, req *Request, reply *Reply, step string) (stone.Ashlar, *Error, error) {
	if l.app.Plans == nil {
		return stone.Ashlar{}, &Error{Type: reasons.PlanInvalid, Message: "plans are not supported: set Applicator.Plans"}, nil
	}
	base, err := l.ground()
	if err != nil {
		return stone.Ashlar{}, nil, err
	}
	l.compiling.Lock() // an abandoned model may still be checking its plan
	defer l.compiling.Unlock()
	c := &l.compilation
	bindings := strings.TrimPrefix(string(reply.Bindings), "null") // a record without bindings contains null
	if c.plan == "" || string(reply.Plan) != c.plan || bindings != c.bindings || !slices.Equal(req.Effects, c.effects) {
		*c = compilation{plan: string(reply.Plan), bindings: bindings, effects: req.Effects}
		c.ashlar, c.err = l.app.Plans.Plan(l.brought(l.ctx, e), l.app, req, reply, base, dag.Types(l.spec.reads()...))
	}
	if step != "" {
		l.checked(step, c.err)
	}
	if c.err != nil {
		return stone.Ashlar{}, errorOf(c.err), nil
	}
	return c.ashlar, nil, nil
}

// A compilation is the result of compiling a lane's latest plan.
type compilation struct {
	plan, bindings string
	effects        []string
	ashlar         stone.Ashlar
	err            error
}

// refusal returns the failure of a reply with a plan that cannot run. The failure makes the invocation fail, so that a resumed
// run repeats the invocation instead of replaying the plan. This applies only to a call that requires a plan: in any other
// invocation, waiting for the earlier steps would delay recording an answer that was paid for.
func (l *lane) refusal(e *entry, step string) func(*Request, *Reply) (*Error, error) {
	return func(req *Request, reply *Reply) (*Error, error) {
		if want := req.Requires.Reply; reply.Type != Plan || want == Value {
			return nil, nil
		}
		_, failure, err := l.compiled(e, req, reply, "")
		if failure != nil {
			l.checked(step, failure)
		}
		return failure, err
	}
}

// isRefused reports whether a failure means that a plan cannot run.
func isRefused(failure *Error) bool {
	return failure != nil && (failure.Type == reasons.PlanInvalid || failure.Type == reasons.PlanTooDeep)
}

// mostFindings is the maximum number of findings in the record of an attempt.
const mostFindings = 100

// Findings returns the findings in the details of a rejected plan.
func (e *Error) Findings() stone.Findings {
	var details struct {
		Findings stone.Findings `json:"findings"`
	}
	if e == nil || !isRefused(e) || json.Unmarshal(e.Details, &details) != nil {
		return nil
	}
	return details.Findings
}

// planValid is the name of the built-in check that passes if a value is a plan, as text or data, that can run.
const planValid = "plan-valid"

func (a *Applicator) planValid(ctx context.Context, s Subject) error {
	text := []byte(s.Out)
	if said, isText := textOf(s.Out); isText {
		text = []byte(said)
	}
	var refused *Error
	if g := s.Request.Guide; g != nil && g.Refuse != nil {
		refused = g.Refuse(text)
	} else if planner, ok := a.Plans.(validating); ok {
		refused = planner.Valid(a, text, dag.DAG{}, stone.In(ctx).Grant())
	} else {
		return errors.New("plan-valid needs a planner: set Applicator.Plans to plan.Planner(plan.Options{})")
	}
	if refused == nil {
		return nil
	}
	return errors.New(refused.Message)
}
