package plan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/schema"
)

// Tool makes a tool with which the model of an agent runs a plan that it writes. A plan does in one call what takes many
// turns otherwise, and its intermediate values never reach the conversation:
//
//	assistant := agent.New("assistant", Report, model, agent.Config{
//		User: …,
//		Use:  []agent.Middleware{plan.Tool("run_plan", app, plan.Options{}, "net/http")},
//	})
//
// The system text of each turn says how plans are written, and which intents of app they can ask with these effects. The plan
// is checked as a whole before it runs. If it cannot run, the model is told every finding, and can call the tool again. It has
// at most the effects, none without any, and draws on the account of the agent. It reads the slots of opts, if
// the agent's DAG has nodes of these types. Its last emission is the result of the call.
func Tool(name string, app *call.Applicator, opts Options, effects ...string) agent.Middleware {
	own := *app
	own.Plans = Planner(opts)
	effects = append([]string{}, effects...) // not nil, which would be those that a candidate needs
	queries := []dag.Querier{written}
	for _, slot := range opts.Slots {
		queries = append(queries, open(slot).Query().Optional())
	}
	run := call.New(name, emitted, call.Spec{Applicator: &own, Tool: call.Apply, Effects: effects, Input: dag.ReaderFunc(func(d dag.DAG) (any, error) {
		return written.From(d)
	}, queries...)})
	w := &writer{app: app, effects: effects, slots: map[string]*schema.Schema{}}
	for _, slot := range opts.Slots {
		w.slots[slot] = nil
	}
	m := agent.AsTool(name, "Runs a plan that you write. The system text says how.", run, written, emitted, func(t *agent.Tool) {
		inner := t.Run
		t.Run = func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
			result, err := inner(ctx, input)
			if findings := findingsIn(err); len(findings) > 0 {
				err = &toldError{w.tell(planIn(input), findings), err}
			}
			return result, err
		}
	})
	system := "The argument \"plan\" of the tool " + name + " is a plan. " + strings.Replace(w.brief(), "Answer with a plan: one JSON object {\"nodes\":[…]} and nothing else. EDN is read as well.", "A plan is one JSON object {\"nodes\":[…]}.", 1)
	system = strings.TrimSuffix(system, asking)
	m.Wrap = func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		said := c.System
		c.System = strings.TrimPrefix(said+"\n\n"+system, "\n\n")
		c, err := next(ctx, c)
		c.System = said
		return c, err
	}
	return m
}

// written is the type of the arguments of the tool, emitted that of its result.
var (
	written = dag.NewType[json.RawMessage]("plan/written").WithSchema(mustParse(`{"type": "object", "required": ["plan"], "additionalProperties": false, "properties": {
		"plan": {"type": "object", "description": "the plan, an object with nodes", "required": ["nodes"], "properties": {"nodes": {"type": "array", "items": {"type": "object"}}}}}}`))
	emitted = dag.NewType[json.RawMessage]("plan/result")
)

func planIn(input json.RawMessage) []byte {
	var in struct {
		Plan json.RawMessage `json:"plan"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	text, err := canon.AppendJSON(nil, in.Plan)
	if err != nil {
		return in.Plan
	}
	return text
}

// findingsIn returns the findings about the plan because of which a call failed, also a recorded one.
func findingsIn(err error) finding.List {
	if refused, ok := errors.AsType[*call.Error](err); ok && refused.Type == call.PlanInvalid {
		return refused.Findings()
	}
	var noted interface{ FailureMeta() map[string]string }
	if !errors.As(err, &noted) {
		return nil
	}
	record := call.RecordIn(noted.FailureMeta())
	if record == nil || record.Failure != call.PlanInvalid || len(record.Tried) == 0 {
		return nil
	}
	return slices.Clone(record.Tried[len(record.Tried)-1].Findings)
}

// A toldError is a refused plan as the model is told of it.
type toldError struct {
	told string
	error
}

func (e *toldError) Error() string { return e.told }
func (e *toldError) Unwrap() error { return e.error }
