package call

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/reasons"
)

// Apply is a tool that every Applicator has. Its input is {"plan": …, "bindings": {…}}, and it
// answers with that plan, which is then run like any returned plan: checked as a whole,
// within the limits of returned plans, and with the effects that the call states. The plan
// is its text, in EDN or JSON, or its data. Applying one costs nothing by itself.
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

// tool returns the tool with this id, nil if there is none.
func (a *Applicator) tool(id string) *entry {
	if id == Apply {
		return applier
	}
	return a.Tools.entry(id)
}
