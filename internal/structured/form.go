package structured

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Form describes an answer: JSON that matches a schema, or text. It is immutable and safe for concurrent use.
type Form struct {
	name    string
	schema  *schema.Schema // nil if the answer is text
	format  *llm.Format
	wrapped bool // requested as the property "value" of an object
}

// Of returns the form for answers that match a schema. The name identifies the schema for the provider and the model, and in error
// messages. If the schema is nil, answers are text.
func Of(name string, s *schema.Schema) *Form {
	f := &Form{name: name, schema: s}
	if s == nil {
		return f
	}
	text := s.Ordered()
	if f.wrapped = !s.Object(); f.wrapped { // providers require an object schema
		text = wrap(text)
	}
	f.format = &llm.Format{Name: Name(name), Schema: text}
	return f
}

// SaysText reports whether the schema is for an object with a text, which a model's reply fits as it is.
func SaysText(s *schema.Schema) bool {
	return slices.ContainsFunc(s.Properties(), func(name string) bool { return name == "text" || name == "content" }) &&
		s.Validate(context.Background(), []byte(`{"text":"a"}`)) == nil
}

// Format returns the response format for requests, or nil for text.
func (f *Form) Format() *llm.Format { return f.format }

// Name replaces each character that providers do not accept in a name with "_", and truncates the name to 64 bytes.
func Name(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

// A Misfit is an answer that does not match its form.
type Misfit struct {
	// Tell is the message to send to the model, which can then answer again.
	Tell string
	// Cut means that the token limit cut off the answer.
	Cut bool
	// Err is the problem. Its message may quote the answer.
	Err error
	// Where is a short description that contains no text from the answer, such as ", first at items[3]". It may be empty.
	Where string
}

// Read returns the JSON in an answer, or the answer's text if the form is text.
func (f *Form) Read(ctx context.Context, r *llm.Reply) ([]byte, *Misfit) {
	cut := r.Cut()
	if f.schema == nil {
		if cut {
			return nil, truncated(r)
		}
		return []byte(r.Text), nil
	}
	text := Unfence(r.Text)
	data, err := f.value(ctx, []byte(text))
	switch {
	case err == nil && !(cut && grows(data)):
		return data, nil
	case cut:
		return nil, truncated(r)
	}
	misfit := f.Misfit(err)
	if !json.Valid([]byte(text)) {
		misfit.Err = fmt.Errorf("the answer is not JSON, but %.80q: %w", r.Text, err)
	}
	return nil, misfit
}

// Answered returns the text of an answer to a request with a response format: JSON that matches the format. If the answer contains
// tool calls or is a refusal, Answered returns the text unchanged.
func Answered(ctx context.Context, f *llm.Format, r *llm.Reply) (string, error) {
	if f == nil || len(r.ToolCalls) > 0 || r.Refused() {
		return r.Text, nil
	}
	s, err := schema.Parse(f.Schema)
	if err != nil {
		return "", err
	}
	data, misfit := (&Form{name: "the response format", schema: s}).Read(ctx, r)
	if misfit != nil {
		return "", misfit.Err
	}
	return string(data), nil
}

// value returns the value in an answer, or an error if the value does not match the schema.
func (f *Form) value(ctx context.Context, data []byte) ([]byte, error) {
	if f.wrapped {
		var fields map[string]json.RawMessage
		if json.Unmarshal(data, &fields) == nil && len(fields) == 1 && fields["value"] != nil {
			if inner, err := f.check(ctx, fields["value"]); err == nil || f.schema.Validate(ctx, data) != nil {
				return inner, err
			}
		}
	}
	return f.check(ctx, data)
}

func (f *Form) check(ctx context.Context, data []byte) ([]byte, error) {
	err := f.schema.Validate(ctx, data)
	if !json.Valid(data) || err == nil && !bytes.Contains(data, []byte(`"json"`)) {
		return data, err
	}
	restored := f.schema.Restore(ctx, data)
	if left := f.schema.Validate(ctx, restored); left == nil || closer(left, err) {
		return restored, left
	}
	return data, err
}

// closer reports whether the value with the error a has fewer problems than the value with the error b, or has a deeper problem.
func closer(a, b error) bool {
	one, ok := errors.AsType[*schema.ValidationError](a)
	other, both := errors.AsType[*schema.ValidationError](b)
	if ok && both && len(one.Problems) == len(other.Problems) {
		return len(one.Problems[0].Path) > len(other.Problems[0].Path)
	}
	return problems(a) < problems(b)
}

// problems returns the number of problems in an error. An error that is not caused by a value, such as a canceled context, counts
// as more than any number of problems.
func problems(err error) int {
	if err == nil {
		return 0
	}
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		return len(invalid.Problems)
	}
	return math.MaxInt
}

// Misfit returns the Misfit for an answer with the given error, which comes from the schema or from the caller's own decoding.
func (f *Form) Misfit(err error) *Misfit {
	m := &Misfit{Err: fmt.Errorf("the answer does not fit %s: %w", f.name, err)}
	tell := err.Error()
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		tell, m.Where = invalid.Detail(), unquoted(invalid.Problems[0])
	}
	m.Tell = "Your answer does not fit the schema:\n" + tell + "\nAnswer again, with JSON that fits and nothing else."
	return m
}

var (
	wanted  = regexp.MustCompile(`^want .*?, got (?:malformed text at line \d+, column \d+|(?:an? )?[a-z]+)`)
	missing = regexp.MustCompile(`^property ".*" is required, but missing$`)
)

// unquoted returns a description of a problem that does not quote the answer.
func unquoted(p schema.Problem) string {
	if p.Path != "" {
		return ", first at " + p.Path
	}
	if what := wanted.FindString(p.Message); what != "" {
		return ": " + what
	}
	if missing.MatchString(p.Message) {
		return ": " + p.Message
	}
	return ""
}

// grows reports whether the JSON may be the beginning of a longer value. For example, 12 may be the beginning of 120.
func grows(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[len(data)-1] >= '0' && data[len(data)-1] <= '9'
}

func truncated(r *llm.Reply) *Misfit {
	return &Misfit{
		Tell: "Your answer was cut off at the limit of its length. Answer again, in fewer words.",
		Cut:  true,
		Err:  fmt.Errorf("the answer was cut off by the token limit (stop reason %q): raise MaxTokens", r.StopReason),
	}
}
