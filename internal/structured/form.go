package structured

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Form describes an answer: JSON that matches a schema, or text. It is immutable and safe for concurrent use.
type Form struct {
	name    string
	schema  *schema.Schema // nil is text
	format  *llm.Format
	wrapped bool // the answer is the property "value" of an object
}

// Of returns the form of answers that match a schema. The name identifies the schema to the provider, the model and the reader of
// an error. With a nil schema, answers are text.
func Of(name string, s *schema.Schema) *Form {
	f := &Form{name: name, schema: s}
	if s == nil {
		return f
	}
	text := s.Ordered()
	if f.wrapped = !s.Object(); f.wrapped { // providers require the schema of an object
		text = wrap(text)
	}
	f.format = &llm.Format{Name: Name(name), Schema: text}
	return f
}

// Format returns the response format of requests, or nil for text.
func (f *Form) Format() *llm.Format { return f.format }

// Name returns a name with each character that providers refuse replaced by "_", cut to 64 bytes.
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
	// Tell is the message to the model, which may answer again.
	Tell string
	// Cut reports whether the token limit ended the answer.
	Cut bool
	// Err describes the misfit. It may quote the answer.
	Err error
	// Where is a short description without words from the answer, such as ", first at items[3]". It may be empty.
	Where string
}

// Read returns the JSON of an answer, or its text if the form is text.
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

// Answered returns the text of an answer to a request with a response format: JSON that matches it. For an answer with tool
// calls, and for a refusal, it is the unchanged text.
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

// value finds the value in an answer and checks it.
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

// closer reports whether one value has fewer problems than another, or a deeper one.
func closer(a, b error) bool {
	one, ok := errors.AsType[*schema.ValidationError](a)
	other, both := errors.AsType[*schema.ValidationError](b)
	if ok && both && len(one.Problems) == len(other.Problems) {
		return len(one.Problems[0].Path) > len(other.Problems[0].Path)
	}
	return problems(a) < problems(b)
}

// problems counts the problems in an error. An error that no value causes, such as the end of the context, counts more.
func problems(err error) int {
	if err == nil {
		return 0
	}
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		return len(invalid.Problems)
	}
	return math.MaxInt
}

// Misfit returns the misfit of an answer with this error, of the schema or of the caller's own
// decoding.
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

// unquoted describes the problem without the words of the answer.
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

// grows reports whether JSON may be the beginning of another value, as 12 is of 120.
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
