package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Config configures the model and its prompts. Only Model is required.
type Config struct {
	Model     llm.Model
	Name      string // of the model, instead of the one that Model was made with
	MaxTokens int    // of an answer; zero means the limit of Model

	// Prompt applies to every request, Intents to the requests of one intent. Role is the
	// role of the model in this capability, such as a judge. It is placed between the
	// two.
	Prompt, Role string
	Intents      map[string]string

	// Schema returns the schema of a name, like the method of call.Applicator. Without
	// it, only text can be requested.
	Schema func(name string) (*schema.Schema, bool)
}

// Check returns an error if the configuration is invalid.
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

// New returns a capability. Its id defaults to llm/model, its kind to llm.
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "llm/model"), cmp.Or(m.Kind, "llm")
	invalid := c.Check()
	if c.Model != nil && m.Cost != (call.Cost{Latency: m.Cost.Latency}) {
		c.Model = llm.Priced(c.Model, m.Cost.Price)
	}
	quote := func(ctx context.Context, req *call.Request) budget.Quote { return c.quote(ctx, req, m) }
	return call.Capability{Metadata: m, Quote: quote, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, &call.Error{Type: call.Unavailable, Message: invalid.Error(), Cause: invalid}
		}
		want, err := c.wanted(req, m)
		if err != nil {
			return nil, err
		}
		answer, used, err := c.ask(ctx, req, want)
		used.USD += m.Cost.USD
		usage := call.Usage{Usage: used}
		if err != nil {
			return &call.Reply{Usage: usage}, failure(ctx, err)
		}
		if req.Turn != nil {
			usage.Mode = modeOf(c.Model)
			out, err := json.Marshal(answer)
			return &call.Reply{Usage: usage, Out: out}, err
		}
		reply, err := want.read(ctx, redact.From(ctx).Text(answer.Text))
		if err != nil {
			return &call.Reply{Usage: usage}, err
		}
		usage.Mode = modeOf(c.Model)
		reply.Usage = usage // a usage claimed by the model itself is text
		return reply, nil
	}}
}

// modeOf says where the answers of a model come from, "" if that is unknown.
func modeOf(m llm.Model) string {
	if i, ok := m.(llm.Informer); ok {
		return i.Info().Mode
	}
	return ""
}

// request makes the request for a model.
func (c Config) request(req *call.Request, want wanted) (*llm.Request, error) {
	if req.Turn != nil {
		return c.turn(req), nil
	}
	question, err := question(req)
	if err != nil {
		return nil, err
	}
	return &llm.Request{
		Model: c.Name, System: c.system(req.Intent, want), MaxTokens: llm.Bound(c.MaxTokens, req.Budget),
		Messages: []llm.Message{llm.User(question)}, ResponseFormat: want.format(),
	}, nil
}

// quote estimates the cost of a request. An invalid request is quoted as an empty one:
// the invocation reports the fault.
func (c Config) quote(ctx context.Context, req *call.Request, m call.Metadata) budget.Quote {
	if c.Model == nil {
		return budget.Fixed(budget.Amount{Roundtrips: 1})
	}
	request := &llm.Request{Model: c.Name}
	if want, err := c.wanted(req, m); err == nil {
		if made, err := c.request(req, want); err == nil {
			request = made
		}
	}
	return llm.Quote(ctx, c.Model, request)
}

// ask sends the request and streams the answer. Answer may be nil if err is not.
func (c Config) ask(ctx context.Context, req *call.Request, want wanted) (answer *llm.Reply, used budget.Usage, err error) {
	request, err := c.request(req, want)
	if err != nil {
		return nil, used, err
	}
	meter := llm.NewMeter(ctx, c.Model, request)
	tell := llm.NewReport(event.At(ctx), req.Voice, c.Model, request, 0)
	hear := listener(req)
	hear(llm.Delta{Kind: llm.Start, Reply: &llm.Reply{}})
	err = errNoEnd
	for delta, failed := range c.Model.Stream(ctx, request) {
		meter.Hear(&delta)
		tell.Hear(&delta)
		if failed == nil && delta.Kind != llm.Start && delta.Kind != llm.Done {
			hear(delta)
		}
		if delta.Reply != nil && delta.Kind != llm.Start && delta.Kind != llm.Restart {
			answer = delta.Reply
		}
		if err = failed; failed != nil || delta.Kind == llm.Done {
			break
		}
		err = errNoEnd
	}
	if answer != nil {
		hear(llm.Delta{Kind: llm.Done, Reply: answer})
	}
	if err == nil && answer.Refused() && req.Turn == nil {
		err = fmt.Errorf("the model refuses: %s", cmp.Or(answer.Refusal, "stop reason "+answer.StopReason))
	} else if err == nil {
		err = answer.CheckContent()
	}
	used = meter.Spent(answer, err)
	tell.End(answer, used, err)
	if i, ok := c.Model.(llm.Informer); ok && i.Info().Pays {
		used = budget.Usage{} // its own calls were charged
	}
	return answer, used, err
}

var errNoEnd = errors.New("the model ended without an answer")

// failure returns the failure of a model as a typed error.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	typed, refused := (*call.Error)(nil), (*budget.ExhaustedError)(nil)
	if errors.As(err, &typed) || errors.As(err, &refused) || errors.As(err, new(*budget.UnpricedError)) {
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
