package cel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel/internal/expr"
)

// The failure types in addition to package call's.
const (
	kindInvalid   = "expression/invalid"    // the expression cannot be compiled
	kindFailed    = "expression/failed"     // the evaluation failed
	kindTooCostly = "expression/too-costly" // the evaluation exceeds its limits on work or memory
)

// Check returns a check that accepts an answer if the expression, which can use the variables call and out, is true. The error
// locates a mistake in the expression.
func Check(expression string) (call.Check, error) {
	c, _, err := check(expression)
	return c, err
}

// AddCheck adds a check by an expression to the Applicator; see Check. Validate reports an error if the expression uses a field
// that the type of an input does not have.
func AddCheck(app *call.Applicator, name, expression string) error {
	c, facts, err := check(expression)
	if err != nil {
		return err
	}
	if app.Checks == nil {
		app.Checks = map[string]call.Check{}
	}
	if app.CheckFacts == nil {
		app.CheckFacts = map[string]call.CheckFacts{}
	}
	app.Checks[name], app.CheckFacts[name] = c, facts
	return nil
}

func check(expression string) (call.Check, call.CheckFacts, error) {
	program, err := expr.Compile(expression, []string{"call", "out"}, expr.Bool)
	if err != nil {
		return nil, call.CheckFacts{}, fmt.Errorf("expression %q: %w", expression, err)
	}
	facts := call.CheckFacts{Fits: func(input, out *schema.Schema) error {
		if err := program.Fits(map[string]*schema.Schema{"call.input": input, "out": out}); err != nil {
			return fmt.Errorf("expression %q: %w", expression, err)
		}
		return nil
	}}
	readsCall := slices.Contains(program.Variables(), "call")
	return func(ctx context.Context, s call.Subject) error {
		variables := map[string]call.JSON{"out": s.Out}
		if readsCall {
			variables["call"] = subject(s.Request)
		}
		holds, err := program.Bool(ctx, variables)
		if err != nil {
			return &unjudged{fmt.Errorf("expression %q: %w", expression, err)}
		}
		if !holds {
			return fmt.Errorf("%s does not hold", expression)
		}
		return nil
	}, facts, nil
}

// unjudged is the error for an expression that could not be evaluated over an answer.
type unjudged struct{ error }

func (e *unjudged) Unwrap() error { return e.error }

// Broken returns false, because another answer may pass the check.
func (*unjudged) Broken() bool { return false }

// subject holds the call in the form that expressions see. Its parts are already JSON.
func subject(req *call.Request) call.JSON {
	if req == nil {
		return call.JSON("{}")
	}
	intent, _ := json.Marshal(req.Intent) // a string can always be encoded
	text := append(call.JSON(`{"intent":`), intent...)
	for _, part := range []struct {
		name string
		json call.JSON
	}{{"input", req.Input}, {"context", req.Context}, {"constraints", req.Constraints}} {
		if len(part.json) > 0 {
			text = append(text, `,"`+part.name+`":`...)
			text = append(text, part.json...)
		}
	}
	return append(text, '}')
}

// Config is the configuration of the capability.
type Config struct {
	// Expression is evaluated with the variable call, as in {'text': 'Hello, ' + call.input.name}. If it is empty, the input of a
	// call must contain an expression and its variables:
	//
	//	{"expression": "a + b", "vars": {"a": 1, "b": 2}}
	Expression string
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	return c.fits("", nil)
}

// fits returns an error if the configuration is invalid, or if the types of the expression show that none of its values can fit
// the schema.
func (c Config) fits(name string, s *schema.Schema) error {
	if c.Expression == "" {
		return nil
	}
	program, err := expr.Compile(c.Expression, []string{"call"}, expr.Any)
	if err != nil {
		return fmt.Errorf("expression %q: %w", c.Expression, err)
	}
	value, err := program.Schema()
	if err != nil {
		return fmt.Errorf("expression %q: %w", c.Expression, err)
	}
	if problems := schema.Compatible(value, s); len(problems) > 0 {
		return fmt.Errorf("expression %q: its value does not fit the schema %s: %s", c.Expression, name, problems[0])
	}
	return nil
}

// New returns a capability whose output is the value of the expression. Fields of the metadata that are empty have defaults: the
// id solver/cel, the kind solver and the intent cel/eval.
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "solver/cel"), cmp.Or(m.Kind, "solver")
	if m.Intents == nil {
		m.Intents = []string{"cel/eval"}
	}
	if c.Expression == "" {
		return call.Capability{Metadata: m, Invoke: evalInput}
	}
	program, err := expr.Compile(c.Expression, []string{"call"}, expr.Any)
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if err != nil {
			return nil, failure(ctx, kindInvalid, err)
		}
		return eval(ctx, program, map[string]call.JSON{"call": subject(req)})
	}}
}

func evalInput(ctx context.Context, req *call.Request) (*call.Reply, error) {
	var input struct {
		Expression *string              `json:"expression"`
		Vars       map[string]call.JSON `json:"vars"`
	}
	if err := json.Unmarshal(req.Input, &input); err != nil || input.Expression == nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Where: "input", Cause: err,
			Message: `the input must be {"expression": text, "vars": {name: value}}`}
	}
	program, err := expr.Compile(*input.Expression, slices.Collect(maps.Keys(input.Vars)), expr.Any)
	if err != nil {
		return nil, failure(ctx, kindInvalid, err)
	}
	return eval(ctx, program, input.Vars)
}

func eval(ctx context.Context, program *expr.Program, variables map[string]call.JSON) (*call.Reply, error) {
	out, err := program.Eval(ctx, variables)
	if err != nil {
		return nil, failure(ctx, kindFailed, err)
	}
	return &call.Reply{Type: call.Value, Out: out}, nil
}

func failure(ctx context.Context, kind string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, expr.ErrTooCostly) {
		kind = kindTooCostly
	}
	failed := &call.Error{Type: kind, Message: err.Error(), Where: "expression", Cause: err}
	var place *expr.Error
	if errors.As(err, &place) && place.Line > 0 {
		failed.Details = call.JSON(fmt.Sprintf(`{"line":%d,"column":%d}`, place.Line, place.Column))
	}
	return failed
}
