package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/asked"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Config configures the model and its prompts. Only Model is required.
type Config struct {
	Model     llm.Model
	Name      string     // the model's name in requests; if empty, the name that Model reports
	MaxTokens int        // the maximum tokens per answer; zero means the limit of Model
	Params    llm.Params // parameters such as the temperature; an agent's own settings take precedence

	// Prompt applies to every request, and Intents to the requests of one intent. Role is the model's role in this capability,
	// such as a judge. Role is placed between the two.
	Prompt, Role string
	Intents      map[string]string

	// Schema returns the schema with the given name, like call.Applicator.Schema. If it is nil, only text can be requested.
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
		if err := checker.Check(); err != nil {
			return err
		}
	}
	return llm.CheckParams(c.Model, c.Params)
}

// Fits returns an error if the model lacks a feature that every request of the capability needs.
func (c Config) Fits(model string, spec llm.Spec, m call.Metadata) error {
	want, err := c.wanted(&call.Request{}, m)
	if err != nil {
		return err
	}
	return spec.Fits(model, &llm.Request{Params: c.Params, ResponseFormat: want.form.Format()})
}

// New returns a capability that answers requests with the configured model. Its id defaults to "llm/model", and its kind to
// "llm".
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "llm/model"), cmp.Or(m.Kind, "llm")
	invalid := c.Check()
	if c.Model != nil && m.Cost != (call.Cost{Latency: m.Cost.Latency}) {
		c.Model = llm.Priced(c.Model, m.Cost.Price)
	}
	quote := func(ctx context.Context, req *call.Request) budget.Quote { return c.quote(ctx, req, m) }
	instructions := func(intent string) string { return c.system(intent, wanted{}) }
	bound := func(ctx context.Context, req *call.Request) budget.Bound { return c.bound(ctx, req, m) }
	return call.Capability{Metadata: m, Quote: quote, Bound: bound, Prompt: instructions, Prompts: c.prompts(m.ID), Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, &call.Error{Type: reasons.Unavailable, Message: invalid.Error(), Cause: invalid}
		}
		want, err := c.wanted(req, m)
		if err != nil {
			return nil, err
		}
		reply, used, err := c.answer(ctx, req, want)
		used.USD += m.Cost.USD
		usage := call.Usage{Usage: used}
		if err != nil {
			return &call.Reply{Usage: usage}, err
		}
		usage.Mode = modeOf(c.Model)
		reply.Usage = usage // a usage in the model's own envelope is only text
		return reply, nil
	}}
}

// modeOf returns the mode of a model, such as llm.Live, or "" if unknown.
func modeOf(m llm.Model) string {
	if i, ok := m.(llm.Informer); ok {
		return i.Info().Mode
	}
	return ""
}

// request returns the request to the model for a request to the capability.
func (c Config) request(req *call.Request, want wanted) (*llm.Request, error) {
	c = c.revised(req)
	if req.Turn != nil {
		return c.turn(req, want), nil
	}
	asked, about := *req, []llm.Message(nil)
	asked.Context, about = want.refused(req.Context)
	question, err := question(&asked)
	if err != nil {
		return nil, err
	}
	return &llm.Request{
		Model: c.Name, System: c.system(req.Intent, want), MaxTokens: llm.Bound(c.MaxTokens, req.Budget),
		Messages: append([]llm.Message{question}, about...), ResponseFormat: want.form.Format(), Params: c.Params,
	}, nil
}

// quote estimates the cost of a request. An invalid request is quoted like an empty request, because the invocation will report
// the fault.
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

// bound returns the maximum cost of an invocation. It includes one repair of an answer that does not fit and, for a plan, one
// request of the whole guide.
func (c Config) bound(ctx context.Context, req *call.Request, m call.Metadata) budget.Bound {
	request, times := &llm.Request{Model: c.Name, MaxTokens: c.MaxTokens, Params: c.Params}, 2
	if req.Turn != nil {
		want, _ := c.wanted(req, m)
		request, times = c.turn(req, want), 1
	} else if slices.Contains(m.CanProduce, call.Plan) && req.Requires.Reply != call.Value {
		times = 3
	}
	return llm.Most(ctx, c.Model, request).Times(times).Add(budget.AtMost(m.Cost.USD))
}

// answer calls the model, and calls it once more if its answer does not fit and the budget has room for a repair.
func (c Config) answer(ctx context.Context, req *call.Request, want wanted) (reply *call.Reply, used budget.Usage, err error) {
	request, err := c.request(req, want)
	if err != nil {
		return nil, used, err
	}
	var drafted stone.Findings
	for repaired, helped := false, false; ; {
		heard, spent, err := c.ask(ctx, req, request)
		used = used.Add(spent)
		if err != nil {
			return nil, used, failure(ctx, err)
		}
		if req.Turn != nil {
			out, err := json.Marshal(heard)
			return &call.Reply{Out: out}, used, err
		}
		clean := *heard
		clean.Text = redact.From(ctx).Text(heard.Text)
		reply, misfit, err := want.read(ctx, &clean)
		help := want.guide != nil && !helped && asksHelp(clean.Text)
		if help {
			misfit = want.helped()
		}
		if misfit == nil {
			if reply != nil {
				reply.Corrected = drafted
			}
			return reply, used, err
		}
		request.Messages = append(request.Messages, heard.Message(), llm.User(misfit.Tell))
		if repaired && !help || !c.affords(ctx, req, request, used) {
			if reply != nil { // the call itself rejects the plan and reports its findings
				return reply, used, nil
			}
			return nil, used, drift("%v", misfit.Err)
		}
		if helped = helped || help; !help {
			repaired = true
		}
		if refused, ok := errors.AsType[*call.Error](misfit.Err); ok {
			drafted = refused.Findings()
		}
		req.Voice.Again("the answer does not fit")
		request.MaxTokens = llm.Bound(c.MaxTokens, less(req.Budget, used))
	}
}

// affords reports whether the remaining budget can pay for another request of the same invocation.
func (c Config) affords(ctx context.Context, req *call.Request, request *llm.Request, used budget.Usage) bool {
	left, least := less(req.Budget, used), llm.Quote(ctx, c.Model, request).Least
	return (left.Tokens == nil || *left.Tokens > least.Tokens) && (left.USD == nil || *left.USD > least.USD)
}

// less returns the limits in left reduced by the given usage.
func less(left budget.Limits, used budget.Usage) budget.Limits {
	if left.Tokens != nil {
		left.Tokens = new(*left.Tokens - used.Tokens())
	}
	if left.USD != nil {
		left.USD = new(*left.USD - used.USD)
	}
	return left
}

// ask sends the request, streams the answer and returns it. If err is not nil, answer may be nil.
func (c Config) ask(ctx context.Context, req *call.Request, request *llm.Request) (answer *llm.Reply, used budget.Usage, err error) {
	asked.Tell(ctx, request)
	if err := asked.Before(ctx, c.Model, request); err != nil {
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
		err = fmt.Errorf("the model refused: %s", cmp.Or(answer.Refusal, "stop reason "+answer.StopReason))
	} else if err == nil {
		err = answer.CheckContent()
	}
	used = meter.Spent(answer, err)
	tell.End(answer, used, err)
	if i, ok := c.Model.(llm.Informer); ok && i.Info().Pays {
		used = budget.Usage{} // the model's own calls have already been charged
	}
	return answer, used, err
}

var errNoEnd = errors.New("the model ended without an answer")

// failure returns a *call.Error for an error of a model.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	typed, refused := (*call.Error)(nil), (*budget.ExhaustedError)(nil)
	if errors.As(err, &typed) || errors.As(err, &refused) || errors.As(err, new(*budget.UnpricedError)) || errors.Is(err, kind.Waiting) {
		return err
	}
	failed := &call.Error{Type: reasons.InvokeFailed, Message: err.Error(), Where: "model", Cause: err}
	if call.AsError(err).Type == reasons.NotRecorded {
		failed.Type = reasons.NotRecorded
	}
	if llm.Retryable(err) {
		failed.Type, failed.Retryable, failed.RetryAfter = reasons.Unavailable, true, llm.RetryAfter(err)
	}
	return failed
}

// turn returns the request for a turn of a conversation: the capability's prompts precede the system text, and the call's context
// and constraints follow the messages. If the conversation does not set a response format, it comes from the out-schema.
func (c Config) turn(req *call.Request, want wanted) *llm.Request {
	turn := *req.Turn
	if turn.ResponseFormat == nil && want.form != nil {
		turn.ResponseFormat = want.form.Format()
	}
	turn.Model = cmp.Or(c.Name, turn.Model)
	turn.System = strings.TrimSpace(c.system(req.Intent, wanted{}) + "\n\n" + turn.System)
	turn.Params = turn.Params.Or(c.Params)
	turn.MaxTokens = llm.Bound(cmp.Or(turn.MaxTokens, c.MaxTokens), req.Budget)
	if text := strings.Join(beside(req), "\n\n"); text != "" {
		turn.Messages = append(slices.Clip(turn.Messages), llm.User(text))
	}
	return &turn
}

// listener returns the function that receives the deltas of the answer.
func listener(req *call.Request) func(llm.Delta) {
	if req.Hear == nil {
		return func(llm.Delta) {}
	}
	return req.Hear
}
