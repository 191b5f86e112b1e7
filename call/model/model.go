package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Config says which model is asked, and what it is told. Only Model is needed.
type Config struct {
	Model     llm.Model
	Name      string // of the model, in place of the one that Model was made with
	MaxTokens int    // of an answer; 0 is the limit of Model

	// Prompt is for every request, Intents for those of one intent. Role is what
	// the model is in this capability, such as a judge; it stands between the two.
	Prompt, Role string
	Intents      map[string]string

	// Schema finds the schema of a name, as the method of call.Applicator does. Nil
	// knows none; then only text can be asked for.
	Schema func(name string) (*schema.Schema, bool)
}

// Check says what is wrong with the configuration.
func (c Config) Check() error {
	if c.Model == nil {
		return errors.New("model: no Model: set one, such as openai.New(openai.Config{…})")
	}
	if c.MaxTokens < 0 {
		return errors.New("model: MaxTokens is negative: want zero for the model's own limit")
	}
	if checker, ok := c.Model.(llm.Checker); ok {
		return checker.Check()
	}
	return nil
}

// New returns a capability. By default its id is llm/model and its kind llm.
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "llm/model"), cmp.Or(m.Kind, "llm")
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, &call.Error{Type: call.Unavailable, Message: invalid.Error(), Cause: invalid}
		}
		want, err := c.wanted(req, m)
		if err != nil {
			return nil, err
		}
		answer, err := c.ask(ctx, req, want)
		usage := usageOf(answer)
		if err != nil {
			return &call.Reply{Usage: usage}, failure(ctx, err)
		}
		reply, err := want.read(ctx, answer.Text)
		if err != nil {
			return &call.Reply{Usage: usage}, err
		}
		reply.Usage = usage // what a model says of that itself is text
		return reply, nil
	}}
}

// ask sends the request and passes on what comes.
func (c Config) ask(ctx context.Context, req *call.Request, want wanted) (answer *llm.Reply, err error) {
	question, err := question(req)
	if err != nil {
		return nil, err
	}
	request := &llm.Request{
		Model: c.Name, System: c.system(req.Intent, want), MaxTokens: c.MaxTokens,
		Messages: []llm.Message{llm.User(question)}, ResponseFormat: want.format(),
	}
	tell := llm.NewReport(event.At(ctx), req.Voice, c.Model, request, 0)
	defer func() { tell.End(answer, err) }()
	for delta, err := range c.Model.Stream(ctx, request) {
		if delta.Reply != nil {
			answer = delta.Reply
		}
		if err != nil {
			return answer, err
		}
		tell.Hear(&delta)
	}
	switch {
	case answer == nil:
		return nil, errors.New("the model ended without an answer")
	case answer.Refusal != "" && answer.Text == "":
		return answer, fmt.Errorf("the model refuses: %s", answer.Refusal)
	}
	return answer, answer.CheckContent()
}

// failure is the type of what went wrong with a model.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if typed := (*call.Error)(nil); errors.As(err, &typed) {
		return err
	}
	failed := &call.Error{Type: call.InvokeFailed, Message: err.Error(), Where: "model", Cause: err}
	if llm.Retryable(err) {
		failed.Type, failed.Retryable, failed.RetryAfter = call.Unavailable, true, retryAfter(err)
	}
	return failed
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*llm.HTTPError](err); ok {
		return e.RetryAfter
	}
	return 0
}

func usageOf(answer *llm.Reply) call.Usage {
	var u call.Usage
	if answer == nil {
		return u
	}
	if n := answer.Usage.InputTokens; n != nil {
		u.InputTokens = *n
	}
	if n := answer.Usage.OutputTokens; n != nil {
		u.OutputTokens = *n
	}
	return u
}
