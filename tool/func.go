package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// An Option sets a property of a tool.
type Option func(*agent.Tool)

// Parallel lets calls of the tool run concurrently with other calls of the same turn whose tools are also parallel.
func Parallel() Option {
	return func(t *agent.Tool) { t.Parallel = true }
}

// Effects declares the tool's effects, such as "fs/write" or "net". Effects() declares that the tool has none. A tool without
// this option is assumed to have any effect.
func Effects(effects ...string) Option {
	return func(t *agent.Tool) {
		if t.Effects == nil {
			t.Effects = []string{}
		}
		t.Effects = append(t.Effects, effects...)
	}
}

// Timeout cancels the context of each call after d. The model is told about the timeout.
func Timeout(d time.Duration) Option {
	return func(t *agent.Tool) { t.Timeout = d }
}

// MaxResult limits the part of a result's text that the model receives to n bytes; the default is 64 KiB, and a negative n means
// unlimited. The agent keeps longer texts, and the model can read the rest with the tool read_result; see package agent.
func MaxResult(n int) Option {
	return func(t *agent.Tool) { t.MaxResult = n }
}

// Preview sets the text that is shown to a person who has to approve a call: the result of fn, for example a diff, instead of the
// arguments. If fn returns an error, the call fails.
func Preview[I any](fn func(context.Context, I) (string, error)) Option {
	return func(t *agent.Tool) {
		name := t.Name
		t.Preview = func(ctx context.Context, raw json.RawMessage) (string, error) {
			var in I
			if err := json.Unmarshal(raw, &in); err != nil {
				return "", &InputError{Tool: name, Problems: []string{err.Error()}}
			}
			return fn(ctx, in)
		}
	}
}

// Func returns a tool that calls fn. The name must consist of 1 to 64 ASCII letters, digits, "_" and "-", because all providers
// accept these. The description tells the model when to use the tool. I must be a struct or a map with string keys. Properties
// that are not in the schema of I are an error in the input.
//
// With the option Parallel, or if several agents use the tool, fn may be called from several goroutines at once.
func Func[I, O any](name, description string, fn func(context.Context, I) (O, error), opts ...Option) agent.Middleware {
	input, err := inputSchema(reflect.TypeFor[I]())
	switch {
	case !validName.MatchString(name):
		err = fmt.Errorf("tool %q: the name must have 1 to 64 characters out of a-z, A-Z, 0-9, _ and -", name)
	case err != nil:
		err = fmt.Errorf("tool %s: %w", name, err)
	case fn == nil:
		err = fmt.Errorf("tool %s: the function is nil", name)
	}
	if err != nil {
		return broken(name, err)
	}
	t := agent.Tool{Tool: llm.Tool{Name: name, Description: description, Schema: input.JSON()}}
	for _, o := range opts {
		o(&t)
	}
	t.Run = func(ctx context.Context, raw json.RawMessage) (agent.Result, error) {
		in, err := decode[I](ctx, name, input, raw)
		if err != nil {
			return agent.Result{}, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return agent.Result{}, err
		}
		return result(name, out)
	}
	return agent.Use(t)
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// broken returns an invalid tool. All its calls return err.
func broken(name string, err error) agent.Middleware {
	return agent.Use(agent.Tool{
		Tool: llm.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)},
		Err:  err,
		Run:  func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, err },
	})
}

// inputSchema returns the schema of t, or an error if the schema does not describe an object, as providers require. The schema
// forbids unknown properties, so that the model is told about misspelled names.
func inputSchema(t reflect.Type) (*schema.Schema, error) {
	s, err := schema.ForType(t)
	if err != nil {
		return nil, err
	}
	if s, err = s.Closed(); err != nil {
		return nil, fmt.Errorf("the input must be a struct or a map with string keys, got %v", t)
	}
	return s, nil
}

// An InputError reports why a call's input was rejected. Its text is for the model that made the call.
type InputError struct {
	Tool     string
	Problems []string // never empty; each states the place, the expected value and the actual value
}

// Error returns all problems in one line.
func (e *InputError) Error() string {
	return fmt.Sprintf("the arguments of %s are wrong: %s; call it again with arguments that fit its schema",
		e.Tool, strings.Join(e.Problems, "; "))
}

func decode[I any](ctx context.Context, name string, s *schema.Schema, raw json.RawMessage) (in I, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := s.Validate(ctx, raw); err != nil {
		e := &InputError{Tool: name, Problems: []string{err.Error()}}
		if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
			e.Problems = nil
			for _, p := range invalid.Problems {
				e.Problems = append(e.Problems, p.String())
			}
		}
		return in, e
	}
	// A value that fits the schema may still overflow the Go type: 1e30 overflows an int.
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, &InputError{Tool: name, Problems: []string{err.Error()}}
	}
	return in, nil
}

func result(name string, out any) (agent.Result, error) {
	switch out := out.(type) {
	case agent.Result:
		return out, nil
	case string:
		return agent.Result{Text: out}, nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return agent.Result{}, fmt.Errorf("the output of %s cannot be written as JSON: %w", name, err)
	}
	s, err := schema.ForType(reflect.TypeOf(out))
	if err != nil {
		return agent.Result{Text: string(data)}, nil // types without a schema have no media
	}
	text, media, err := structured.Media(data, s)
	if err != nil {
		return agent.Result{}, fmt.Errorf("the output of %s: %w", name, err)
	}
	return agent.Result{Text: string(text), Media: media}, nil
}
