package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/schema"
)

// Planner returns a call.Planner for the field Plans of a call.Applicator. It runs the plans that capabilities return. Calls within
// plans have such a planner by default. A returned plan can read the nodes that its call declares, and the slots of the enclosing
// plan or of opts. To ask a person, the plan needs the effect ask.
func Planner(opts Options) call.Planner { return planner{opts: opts} }

type planner struct {
	opts   Options
	depth  int       // depth of the call whose answer is the plan
	within *compiler // the enclosing plan; nil if the call is not in a plan
}

// passes returns a function that reports whether a call with the queries passed passes a slot on to a returned plan.
func (pl planner) passes(passed []dag.Query) func(name string) bool {
	names := map[string]bool{}
	for _, q := range passed {
		if q.IsEverything() || q.Type() == nil {
			return func(string) bool { return true }
		}
		names[q.Type().Name()] = true
	}
	slots := map[string]bool{}
	if pl.within != nil {
		slots = pl.within.readable()
	}
	return func(name string) bool {
		own := strings.TrimPrefix(name, failedPrefix) // a slot is passed on together with its record
		return names[name] || names[own] || slots[own] || slices.Contains(pl.opts.Slots, own)
	}
}

// failedPrefix is the prefix of the types of allowed failures.
var failedPrefix = call.Failed(open("")).Name()

// Plan checks and compiles a plan that a capability returned.
func (pl planner) Plan(ctx context.Context, app *call.Applicator, req *call.Request, reply *call.Reply, d dag.DAG, passed []dag.Query) (stone.Ashlar, error) {
	p, err := read(reply.Plan, pl.opts.Limits.nodes())
	if err != nil {
		return stone.Ashlar{}, refused(asInvalid(err))
	}
	opts := pl.opts
	depth := max(len(req.Stack)+1, pl.depth)
	if limit := opts.Limits.depth(); depth+p.depth > limit {
		return stone.Ashlar{}, &call.Error{Type: reasons.PlanTooDeep, Message: fmt.Sprintf("the plan would be nested %d deep, at most %d are allowed", depth+p.depth, limit)}
	}
	bound, names, findings := bindings(reply.Bindings)
	if req.Context != nil && !slices.Contains(names, contextSlot) && p.reads(contextSlot) {
		bound, names = append(bound, binding(contextSlot, req.Context)), append(names, contextSlot)
	}
	slots, hidden, withheld := slotsOf(d, pl.passes(passed))
	opts.Slots = slices.Concat(slots, names)
	c := newCompiler(p, app, opts, hidden, depth)
	c.answers, c.withheld = true, withheld
	if pl.within != nil {
		for _, name := range slots {
			if s := pl.within.schemaIn(d, name); s != nil && len(c.definers[name]) == 0 && !slices.Contains(names, name) {
				c.types[name] = open(name).WithSchema(s)
			}
		}
	}
	c.findings = append(c.findings, findings...)
	c.compile()
	if len(bound) > 0 && !c.ashlar.IsZero() {
		c.ashlar = stone.Seq(c.ashlar.Name(), stone.Seq("bindings", bound...), c.ashlar)
	}
	// Effects that are not granted to the call are not granted to a returned plan either. The list must not be nil, which would
	// grant everything.
	c.validate(ctx, &c.report, stone.Config{Input: d, Grant: append([]string{}, req.Effects...)})
	if err := c.findings.Err(); err != nil {
		return stone.Ashlar{}, refused(c.findings)
	}
	return c.ashlar, nil
}

// refused returns the error for an invalid plan that a capability returned, with the given findings.
func refused(findings stone.Findings) error {
	err := findings.Err()
	errs := findings.Errors()
	told := make([]string, 0, mostTold)
	for _, f := range errs[:min(len(errs), mostTold)] {
		told = append(told, f.String())
	}
	e := &call.Error{Type: reasons.PlanInvalid, Cause: err}
	if e.Message = "the plan is invalid: " + strings.Join(told, "; "); len(errs) > mostTold {
		e.Message += fmt.Sprintf(" (and %d more)", len(errs)-mostTold)
	}
	details := map[string]any{"findings": findings.Errors()}
	var denied []string
	for _, f := range findings.Errors() {
		if f.Type == "effect-not-granted" {
			denied = append(denied, f.Queried)
		}
	}
	if denied != nil {
		details["denied"] = denied
	}
	// Findings are text and can always be encoded.
	e.Details, _ = json.Marshal(details)
	return e
}

// schemaIn returns the schema of a slot if the slot's value in d matches it, and otherwise nil. After a fan-out the value does not
// match, because it is a list.
func (c *compiler) schemaIn(d dag.DAG, name string) *schema.Schema {
	s, n := c.slotType(name).Schema(), nearest(d, open(name))
	if s == nil || n == nil || s.Validate(d.Context(), []byte(n.JSON())) != nil {
		return nil
	}
	return s
}

// Valid implements an optional method of a call.Planner, which the check plan-valid uses. It returns an error if the plan in text
// cannot run, and otherwise nil. A slot that neither the plan nor d defines is not an error, because it may be supplied when the
// plan is applied, unless the plan declares its inputs.
func (pl planner) Valid(app *call.Applicator, text []byte, d dag.DAG, grant []string) *call.Error {
	p, err := read(text, pl.opts.Limits.nodes())
	if err != nil {
		return call.AsError(refused(asInvalid(err)))
	}
	opts := pl.opts
	slots, hidden, _ := slotsOf(d, nil)
	opts.Slots = slices.Concat(opts.Slots, slots)
	c := newCompiler(p, app, opts, hidden, pl.depth)
	c.answers = true
	c.compile()
	c.validate(context.Background(), &c.report, stone.Config{Input: d, Grant: grant})
	found := slices.DeleteFunc(c.findings, func(f stone.Finding) bool {
		return f.Type == "missing-producer" && !p.stated && len(c.definers[f.Queried]) == 0 && f.Suggestion == ""
	})
	if found.Err() == nil {
		return nil
	}
	return call.AsError(refused(found))
}

// bindings returns the steps that write the slots of a plan's bindings, the names of these slots, and findings about invalid
// bindings.
func bindings(object call.JSON) (steps []stone.Ashlar, names []string, findings stone.Findings) {
	if object == nil {
		return nil, nil, nil
	}
	var slots map[string]json.RawMessage
	if err := json.Unmarshal(object, &slots); err != nil {
		return nil, nil, stone.Findings{{Type: badValue, Ashlar: "plan", Path: "bindings", Message: "expected a map from names to values: " + err.Error()}}
	}
	for _, key := range slices.Sorted(maps.Keys(slots)) {
		name := strings.TrimPrefix(key, ":") // names in JSON may start with a colon
		if slices.Contains(names, name) {
			findings = append(findings, stone.Finding{Type: "duplicate-name", Ashlar: "plan", Path: "bindings." + key, Queried: name,
				Message: fmt.Sprintf("the name %q appears twice: remove one", name)})
			continue
		}
		if name == "" || reserved(name) {
			findings = append(findings, stone.Finding{Type: reservedName, Ashlar: "plan", Path: "bindings." + name, Queried: name,
				Message: fmt.Sprintf("the name %q is reserved: auth/…, roles/… and stone/… are not for plans", name)})
			continue
		}
		names = append(names, name)
		steps = append(steps, binding(name, slots[key]))
	}
	return steps, names, findings
}

// binding returns the step that writes the slot name with the given value.
func binding(name string, value json.RawMessage) stone.Ashlar {
	return stone.Func0(name, open(name), func(context.Context) (json.RawMessage, error) { return value, nil }, stone.Effects())
}

// contextSlot is the name of the slot that contains the context of the answered request, unless the plan has a binding of that
// name.
const contextSlot = "context"

// Capability returns a capability that answers every request with the plan p. The applicator then runs the plan, with the fields of
// the request's input as slots and the request's context as the slot "context". In m, Kind defaults to "plan", and CanProduce to
// plans only. If the form of the plan has faults, the error is a *stone.Invalid.
func Capability(m call.Metadata, p *Plan) (call.Capability, error) {
	text := p.String()
	if text == "" {
		return call.Capability{}, p.faults.Err()
	}
	if m.Kind == "" {
		m.Kind = "plan"
	}
	if m.CanProduce == nil {
		m.CanProduce = []string{call.Plan}
	}
	return call.Capability{Metadata: m, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		return &call.Reply{Type: call.Plan, Plan: []byte(text), Bindings: req.Input}, nil
	}}, nil
}
