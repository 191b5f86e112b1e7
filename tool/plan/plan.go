// Package plan provides a tool that runs plans written by an agent's model.
package plan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
)

// Options say what plans may use. With the zero value, plans can use only intents without effects.
type Options struct {
	// Effects lists the effects that a plan may have, provided that the run grants them.
	Effects []string
	// Slots lists the node types of the agent's DAG that plans may read as slots.
	Slots []string
	// Limits applies to each plan in the same way as to plans that capabilities return.
	Limits plan.Limits
}

// Tool returns a tool with which an agent runs plans that call the intents of app. One plan can replace many turns, and its
// intermediate values do not become part of the conversation:
//
//	assistant := agent.New("assistant", Report, model, agent.Config{
//		User: …,
//		Use:  []agent.Middleware{plan.Tool("run_plan", app, plan.Options{Effects: []string{"net/http"}})},
//	})
//
// The system text of each turn explains how to write plans and what they may use. A plan is checked as a whole before it runs. If
// the plan is invalid, it does not run: the model receives all findings and can call the tool again. The costs of a plan are
// charged to the agent's account. The last value that the plan emits is the result of the call.
func Tool(name string, app *call.Applicator, opts Options) agent.Middleware {
	own := *app
	planner := plan.Planner(plan.Options{Slots: opts.Slots, Limits: opts.Limits})
	own.Plans = planner
	effects := append([]string{}, opts.Effects...) // must not be nil, because nil would allow all effects that a candidate needs
	queries, slots := []dag.Querier{arguments}, map[string]any{}
	for _, slot := range opts.Slots {
		queries, slots[slot] = append(queries, dag.NewType[json.RawMessage](slot).Query().Optional()), nil
	}
	run := call.New(name, result, call.Spec{Applicator: &own, Tool: call.Apply, Effects: effects, Input: dag.ReaderFunc(func(d dag.DAG) (any, error) {
		return arguments.From(d)
	}, queries...)})
	guide := &call.Guide{}
	if p, ok := planner.(guiding); ok {
		d, _ := plan.Bind(dag.DAG{}, slots) // a reserved name is rejected if a plan reads it
		guide = p.Guide(app, &call.Request{Effects: effects}, d, nil)
	}
	m := agent.AsTool(name, "Runs a plan that you write. The system text says how.", run, arguments, result, func(t *agent.Tool) {
		inner := t.Run
		t.Run = func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
			result, err := inner(ctx, input)
			if findings := findingsIn(err); len(findings) > 0 {
				err = &refusedError{guide.Tell(planIn(input), findings) + "Call the tool again with the whole corrected plan.", err}
			}
			return result, err
		}
	})
	m.Bound = func(context.Context) budget.Bound { return budget.Bound{} }
	m.Wrap = func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		before := c.System
		if c.System != "" {
			c.System += "\n\n"
		}
		c.System += "The argument \"plan\" of the tool " + name + " is a plan. It is checked as a whole before it runs. " + guide.Brief
		c, err := next(ctx, c)
		c.System = before
		return c, err
	}
	return m
}

// A guiding is a call.Planner that can explain to a model how to write its plans.
type guiding interface {
	Guide(app *call.Applicator, req *call.Request, d dag.DAG, passed []dag.Query) *call.Guide
}

// The node types of the tool's arguments and results.
var (
	arguments = dag.NewType[json.RawMessage]("plan/arguments").WithSchema(argumentSchema)
	result    = dag.NewType[json.RawMessage]("plan/result")
)

var argumentSchema = func() *schema.Schema {
	s, err := schema.Parse([]byte(`{"type": "object", "required": ["plan"], "additionalProperties": false, "properties": {
		"plan": {"type": "object", "description": "the plan, an object with nodes", "required": ["nodes"], "properties": {"nodes": {"type": "array", "items": {"type": "object"}}}}}}`))
	if err != nil {
		panic(err) // cannot fail, because the schema is constant
	}
	return s
}()

// planIn returns the plan in the arguments of a call, or nil if they contain none.
func planIn(input json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return nil
	}
	return fields["plan"]
}

// findingsIn returns the findings because of which a plan was rejected, from err itself or from the record in err. It returns nil
// for any other error.
func findingsIn(err error) stone.Findings {
	if refused, ok := errors.AsType[*call.Error](err); ok && refused.Type == reasons.PlanInvalid {
		return refused.Findings()
	}
	var noted interface{ FailureMeta() map[string]string }
	if !errors.As(err, &noted) {
		return nil
	}
	record := call.RecordIn(noted.FailureMeta())
	if record == nil || record.Failure != reasons.PlanInvalid || len(record.Tried) == 0 {
		return nil
	}
	return slices.Clone(record.Tried[len(record.Tried)-1].Findings)
}

// A refusedError tells the model why a plan cannot run.
type refusedError struct {
	told string
	error
}

func (e *refusedError) Error() string { return e.told }
func (e *refusedError) Unwrap() error { return e.error }
