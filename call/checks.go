package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/pattern"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// builtinChecks maps names to the checks that every Applicator has.
var builtinChecks = map[string]Check{
	"schema-valid":    func(_ context.Context, s Subject) error { return s.invalid },
	"non-empty":       nonEmpty,
	"max-chars":       maxChars,
	"json":            isJSON,
	"regex":           matches,
	"no-repetition":   noRepetition,
	"response-format": fitsFormat,
	planValid:         func(context.Context, Subject) error { return nil }, // see Applicator.check
	"legal-move": func(context.Context, Subject) error {
		return errors.New(`legal-move needs the rules of chess: pass cli.Main the part of package github.com/stonelayer/stone/x/solve/uci, or set Applicator.Checks["legal-move"] to its LegalMove`)
	},
}

// check returns the check with the given name, or nil if the name is unknown.
func (app *Applicator) check(name string) Check {
	if c := app.Checks[name]; c != nil {
		return c
	}
	if name == planValid {
		return app.planValid
	}
	return builtinChecks[name]
}

// Paid returns a check that runs a costly check, such as a program, in a recorded step, so that a resumed run does not repeat it.
// Name must be the check's name in Applicator.Checks.
func Paid(name string, check Check) Check {
	return func(ctx context.Context, s Subject) error {
		why, err := stone.Step(ctx, "check "+name+" "+s.Step, judged{s.Request.asked(""), s.Out}, func(ctx context.Context, _ judged) (string, error) {
			if err := check(ctx, s); err != nil {
				if ctx.Err() != nil {
					return "", err
				}
				return err.Error(), nil
			}
			return "", nil
		})
		if err == nil && why != "" {
			err = errors.New(why)
		}
		return err
	}
}

// judged is the step input of a check.
type judged struct {
	Asked asked `json:"asked"`
	Out   JSON  `json:"out"`
}

// CheckBy returns a check that invokes the capability cap of the registry. The capability receives the same input as a judge. The
// check passes if the answer is true, or an object whose field "pass" is true; otherwise the field "why" contains the reason.
// Each check counts as a round trip on the call's account. Name must be the check's name in Applicator.Checks, and cap must be
// the Asks of its CheckFacts.
func CheckBy(name string, r *Registry, cap string) Check {
	return func(ctx context.Context, s Subject) error {
		e := r.entry(cap)
		if e == nil {
			return fmt.Errorf("unknown capability %q", cap)
		}
		input, err := s.Material("")
		if err != nil {
			return err
		}
		step := "check " + name + " " + s.Step
		req := &Request{Trace: s.Request.Trace, Stack: s.Request.Stack, Intent: terms.Check, Cap: cap, Input: input, InSchema: s.Request.InSchema, Schema: passAnswer, Attempt: 1, judges: true}
		draw, err := e.reserve(ctx, budget.From(ctx), req, step)
		if err != nil {
			return err
		}
		a, err := e.paid(ctx, req, step, draw, false)
		if err != nil {
			return err
		}
		if a.Failure != nil {
			return a.Failure
		}
		return passOf(a.Reply.Out)
	}
}

// passAnswer is the schema of the answer expected from a model.
var passAnswer = mustParse(`{
	"type": "object",
	"required": ["pass"],
	"properties": {"why": {"type": "string", "description": "why it does not pass"}, "pass": {"type": "boolean"}}
}`)

// passOf returns nil if out, the answer of a capability that serves as a check, says that the check passes; otherwise, it returns
// the reason.
func passOf(out JSON) error {
	if string(out) == "true" {
		return nil
	}
	var said struct {
		Pass *bool
		Why  string
	}
	switch err := json.Unmarshal(out, &said); {
	case string(out) == "false":
		return errors.New("it does not hold")
	case err != nil || said.Pass == nil:
		return fmt.Errorf("the capability returned %.60s: want true, false, or an object with pass", out)
	case !*said.Pass:
		return errors.New(cmp.Or(said.Why, "it does not hold"))
	}
	return nil
}

// textOf returns out as text: out itself if it is a string, its field "text" or "content" if that is a string, otherwise its JSON.
func textOf(out JSON) (text string, isText bool) {
	if text, isText = stringOf(out); isText {
		return text, true
	}
	for _, name := range []string{"text", "content"} {
		if text, isText = stringOf(member(out, name)); isText {
			return text, true
		}
	}
	return string(out), false
}

// stringOf returns the value of a JSON string.
func stringOf(v JSON) (s string, ok bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	return s, json.Unmarshal(v, &s) == nil
}

// member returns a field's value in a canonical JSON object, or nil if the object lacks the field. It relies on canonical
// JSON containing no white space between tokens and no escaped letters.
func member(object JSON, name string) JSON {
	if len(object) < 2 || object[0] != '{' {
		return nil
	}
	for i := 1; i < len(object)-1; i++ { // skips the comma
		colon := i + valueEnd(object[i:])
		end := colon + 1 + valueEnd(object[colon+1:])
		if string(object[i+1:colon-1]) == name {
			return object[colon+1 : end]
		}
		i = end
	}
	return nil
}

// valueEnd returns the length of the canonical JSON value at the start of data.
func valueEnd(data JSON) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']'):
			return i
		}
	}
	return len(data)
}

func nonEmpty(_ context.Context, s Subject) error {
	text, isText := textOf(s.Out)
	if isText && strings.TrimSpace(text) == "" || !isText && (text == "null" || text == "[]" || text == "{}") {
		return errors.New(s.what() + " is empty")
	}
	return nil
}

func maxChars(_ context.Context, s Subject) error {
	var limit int
	if err := constraint(s.Request, "max-chars", &limit); err != nil {
		return err
	}
	text, _ := textOf(s.Out)
	if n := utf8.RuneCountInString(text); n > limit {
		return fmt.Errorf("%s has %d characters: want at most %d", s.what(), n, limit)
	}
	return nil
}

func isJSON(_ context.Context, s Subject) error {
	if text, isText := textOf(s.Out); isText && !json.Valid([]byte(text)) {
		return errors.New("the text is not JSON")
	}
	return nil
}

// fitsFormat returns an error if a model's answer does not fit the response format of the request to a [Model].
func fitsFormat(ctx context.Context, s Subject) error {
	if s.Request.Turn == nil || s.Request.Turn.ResponseFormat == nil {
		return nil
	}
	out := s.reply
	if out == nil {
		out = s.Out
	}
	reply, err := readTurn(out)
	if err == nil {
		_, err = structured.Answered(ctx, s.Request.Turn.ResponseFormat, reply)
	}
	return err
}

// matches stops when ctx is done, because the pattern may come from a plan.
func matches(ctx context.Context, s Subject) error {
	var expr string
	if err := constraint(s.Request, "regex", &expr); err != nil {
		return err
	}
	re, err := pattern.Compile(expr)
	if err != nil {
		return &unusable{fmt.Errorf("constraints.regex: %w", err)}
	}
	text, _ := textOf(s.Out)
	switch ok, err := re.Match(ctx, text); {
	case err != nil:
		return fmt.Errorf("constraints.regex: %w", err)
	case !ok:
		return fmt.Errorf("%s does not match %.200s", s.what(), expr)
	}
	return nil
}

func noRepetition(_ context.Context, s Subject) error {
	text, _ := textOf(s.Out)
	var detector llm.NGram
	_, _ = detector.Write([]byte(text)) // Write never fails
	if hit := detector.Tripped(); hit != nil {
		return fmt.Errorf("%s repeats itself: %v", s.what(), hit)
	}
	return nil
}

// unusable is the error of a check that cannot judge any value.
type unusable struct{ error }

func (e *unusable) Unwrap() error { return e.error }

// Broken returns true, because the check cannot pass for any other answer either.
func (*unusable) Broken() bool { return true }

// constraint decodes the named constraint of a request.
func constraint(r *Request, name string, to any) error {
	var all map[string]json.RawMessage
	if r.Constraints != nil {
		if err := json.Unmarshal(r.Constraints, &all); err != nil {
			return &unusable{fmt.Errorf("constraints must be an object: %w", err)}
		}
	}
	value, ok := all[name]
	if !ok || string(value) == "null" {
		return &unusable{fmt.Errorf("the check needs constraints.%s: add it to the call", name)}
	}
	if err := json.Unmarshal(value, to); err != nil {
		return &unusable{fmt.Errorf("constraints.%s: %w", name, err)}
	}
	return nil
}

// A Language compiles the expressions of guards, checks and scorers. An error from a method locates the mistake in the text.
// Methods can be called concurrently. Package cel provides a Language.
type Language interface {
	// Guard compiles an expression that reads the given variables and yields true or false.
	Guard(text string, variables []string) (Expression, error)
	// Formula compiles an expression that reads the given variables and yields any value.
	Formula(text string, variables []string) (Expression, error)
	// Check compiles a check whose expression reads the variables call and out.
	Check(text string) (Check, CheckFacts, error)
}

// An Expression is a compiled expression. Its methods can be called concurrently.
type Expression interface {
	// Variables returns the names of the variables that the expression reads, sorted.
	Variables() []string
	// Fits returns an error if the expression uses a variable in a way that the variable's schema rules out. The keys of schemas
	// are paths, such as "output" or "call.input"; a nil schema is ignored. The error locates the first such use.
	Fits(schemas map[string]*schema.Schema) error
	// Eval returns the value of the expression as canonical JSON. Reading a variable that is absent is an error.
	Eval(ctx context.Context, variables map[string]json.RawMessage) (json.RawMessage, error)
}
