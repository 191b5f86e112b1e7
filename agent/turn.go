package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/asked"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// Wrap returns a handler that runs the middlewares around inner, the first outermost, as an agent does in each turn. The agent's
// inner handler calls the model and runs the model's tool calls; a test of a middleware supplies its own.
func Wrap(use []Middleware, inner Handler) Handler {
	return func(ctx context.Context, c Context) (Context, error) {
		o := onion{events: eventsOf(ctx), inner: func(ctx context.Context, c *Context) (err error) {
			*c, err = inner(ctx, *c)
			return err
		}}
		err := o.run(ctx, &c, use)
		return c, err
	}
}

// onion runs middlewares around a handler. Its functions share one Context. This keeps the stack of an agent that is waiting for
// its model at 16 KB instead of 32 KB, and the whole agent at 66 KB instead of 82 KB.
type onion struct {
	events
	inner   func(context.Context, *Context) error
	offered []Tool // the tools of all middlewares, in order; may be empty
}

// run runs the rings from the outermost to the inner handler and back.
func (o *onion) run(ctx context.Context, c *Context, rings []Middleware) error {
	for i := range rings {
		m := &rings[i]
		takesPart := m.Guard == nil || m.Guard(*c)
		if o.debug {
			o.place.Send(event.MiddlewareRan{Turn: c.Turn, Middleware: m.Name, Active: takesPart})
		}
		if !takesPart {
			continue
		}
		if m.Tool != nil && m.Tool.Left == nil {
			o.offer(c, m.Tool)
		}
		if m.Wrap != nil {
			return o.wrap(ctx, c, m, rings[i+1:])
		}
	}
	return o.inner(ctx, c)
}

func (o *onion) wrap(ctx context.Context, c *Context, m *Middleware, rest []Middleware) (err error) {
	*c, err = m.Wrap(ctx, *c, func(ctx context.Context, c Context) (Context, error) {
		err := o.run(ctx, &c, rest)
		return c, err
	})
	return err
}

// offer is like Context.Offer, but avoids a copy of the tools: as long as they are in the order of the middlewares, all contexts
// share the agent's slice of tools.
func (o *onion) offer(c *Context, t *Tool) {
	n := len(c.Tools)
	if partOf(o.offered, c.Tools) && n < len(o.offered) && o.offered[n].Name == t.Name {
		c.Tools = o.offered[: n+1 : n+1]
		return
	}
	*c = c.Offer(*t)
}

// partOf reports whether the slice all begins with the elements of tools.
func partOf(all, tools []Tool) bool {
	return len(tools) == 0 || len(all) > 0 && &tools[0] == &all[0]
}

func wired(tools []Tool) []llm.Tool {
	out := make([]llm.Tool, len(tools))
	for i := range tools {
		out[i] = tools[i].Tool
	}
	return out
}

// ask is the innermost handler: it calls the model and runs the tool calls in the answer.
func (r *run) ask(ctx context.Context, c *Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(c.Tools) > 0 && len(handles(c.Messages)) > 0 {
		*c = c.Offer(r.reads())
	}
	if err := r.granted(c.Tools); err != nil {
		return err
	}
	// If a request ends with the model's own words, servers continue that message or reject the request. Only a paused turn wants
	// this.
	if n := len(c.Messages); n == 0 || c.Messages[n-1].Role == llm.RoleAssistant && !r.paused {
		c.Messages = append(slices.Clip(c.Messages), llm.User("Continue."))
	}
	reply, err := r.recall(ctx, c)
	if err != nil {
		if errors.Is(err, reasons.Overflow) { // the window is smaller than the table says
			r.full, _ = c.request().Tokens()
		}
		return err
	}
	r.heard(c, reply)
	if len(reply.ToolCalls) == 0 || reply.Refused() {
		return nil
	}
	return r.dispatch(ctx, c)
}

// heard sets c.Reply and appends the reply to the messages of c.
func (r *run) heard(c *Context, reply *llm.Reply) {
	c.Reply = reply
	if in := reply.Usage.InputTokens; in != nil && *in > 0 {
		r.prefix = &llm.Prefix{Messages: len(c.Messages), Tokens: *in}
	}
	c.Messages = append(c.Messages, reply.Message())
	if reply.StopReason == windowFull {
		c.prefix = r.prefix
		r.full, _ = c.request().Tokens()
	}
	if len(reply.ToolCalls) > 0 {
		r.called, r.told = true, false
	}
}

// windowFull is the stop reason of an answer cut off at the end of the model's window.
const windowFull = "model_context_window_exceeded"

// granted returns an error if a tool has an effect that the agent does not declare, because only the declared effects have been
// compared with the run's grant.
func (r *run) granted(tools []Tool) error {
	for _, t := range tools {
		for _, e := range t.Effects {
			if !slices.Contains(r.effects, e) {
				return failure(kind.Error, nil, "the tool %q has the effect %q, which the agent does not declare: add the effect to Effects of the tool's middleware", t.Name, e)
			}
		}
	}
	return nil
}

// turnRecord is the record of a turn.
type turnRecord struct {
	Reply *llm.Reply   `json:"reply"`
	Usage budget.Usage `json:"usage,omitzero"`
}

// recall calls the model, or returns the recorded answer. A recorded answer is used even if the request has changed.
func (r *run) recall(ctx context.Context, c *Context) (*llm.Reply, error) {
	q, err := r.question(ctx, c)
	if err != nil {
		return nil, err
	}
	rec, err := stone.Step(q.Context(ctx), q.step(), struct{}{}, q.ask)
	return q.reply(c, &rec, err)
}

// step returns the name of the step that records the turn.
func (q *question) step() string { return address.TurnStep(q.turn) }

// reply returns the reply that the step of the turn recorded.
func (q *question) reply(c *Context, rec *turnRecord, err error) (*llm.Reply, error) {
	c.uses(q.end(rec.Usage, err))
	switch {
	case err != nil:
		return nil, err
	case q.asked:
	case rec.Reply == nil:
		return nil, failure(kind.Replay, nil, "the recorded turn has no reply: remove the record to call the model again")
	default:
		llm.Recall(q.place, q.model, &q.req, q.turn, rec.Reply, rec.Usage)
	}
	return restored(rec.Reply), nil
}

// restored sets cut-off arguments back to nil, because JSON reads them as null.
func restored(r *llm.Reply) *llm.Reply {
	if !slices.ContainsFunc(r.ToolCalls, isNull) {
		return r
	}
	reply := *r
	reply.ToolCalls = withoutNull(r.ToolCalls)
	return &reply
}

func isNull(call llm.ToolCall) bool { return string(call.Input) == "null" }

func withoutNull(calls []llm.ToolCall) []llm.ToolCall {
	calls = slices.Clone(calls)
	for i := range calls {
		if isNull(calls[i]) {
			calls[i].Input = nil
		}
	}
	return calls
}

// question is one request in progress. It is a value with methods, because closures would allocate each shared variable.
type question struct {
	*run
	payment
	turn  int
	req   llm.Request
	asked bool // whether the model was called now rather than the answer replayed
	tell  *llm.Report
}

// question returns the question with a turn's request, and draws the estimated cost from the budget.
func (r *run) question(ctx context.Context, c *Context) (q *question, err error) {
	q = &question{run: r, turn: c.Turn, req: llm.Request{
		Model: c.Model, System: c.System, Messages: slices.Clip(c.Messages), MaxTokens: c.MaxTokens,
		ResponseFormat: c.Format, Prefix: c.prefix,
		// Without tools, the first answer is probably the last, and nothing would read the cache.
		Cache: !r.cfg.NoCache && (len(c.Tools) > 0 || c.Turn > 1), Conversation: r.thread,
	}}
	if c.Params != nil {
		q.req.Params = *c.Params
	}
	if partOf(r.agent.offered, c.Tools) {
		q.req.Tools = r.agent.told[:len(c.Tools):len(c.Tools)]
	} else {
		q.req.Tools = wired(c.Tools)
	}
	q.payment, err = pay(ctx, q.step(), r.model, &q.req)
	return q, err
}

// ask calls the model.
func (q *question) ask(ctx context.Context, _ struct{}) (turnRecord, error) {
	if q.full > 0 {
		if length, _ := q.req.Tokens(); length >= q.full {
			return turnRecord{}, failure(reasons.Overflow, nil, "the conversation has about %d tokens, and the model's window ended at %d%s", length, q.full, toShorten)
		}
	}
	if !q.own { // otherwise the model's own calls have been recorded
		if err := asked.Before(ctx, q.model, &q.req); err != nil {
			return turnRecord{}, err
		}
	}
	q.asked, q.answer = true, event.At(ctx)
	var voice *event.Voice
	if q.answer.Wants(event.LevelDelta) {
		voice = q.answer.Speak(llm.Name(q.model, &q.req))
	}
	q.tell = llm.NewReport(q.answer, voice, q.model, &q.req, q.turn)
	if q.payment.watch = q.cfg.Repetition; q.repeats < maxExtra {
		q.payment.again = 1
	}
	reply, err := q.payment.ask(ctx, q.model, &q.req, func(d *llm.Delta) {
		if _, repeats := errors.AsType[*llm.RepetitionTrippedError](d.Err); repeats && d.Kind == llm.Restart {
			q.repeats++
		}
		q.tell.Hear(d)
	})
	if err == nil && reply.StopReason != pausedTurn {
		err = reply.CheckContent()
	}
	q.tell.End(reply, q.spent, err)
	if err != nil {
		return turnRecord{}, q.failed(ctx, err)
	}
	reply.ToolCalls = keepable(reply.ToolCalls)
	return turnRecord{reply, q.spent}, nil
}

// toShorten ends the error for a conversation that is too long. It says what to do.
const toShorten = ": add the middleware Compact (with a smaller Keep if it has one), or use a model with a larger window"

// keepable removes arguments that no node can contain or that are too long, so that only the call fails and not the turn, which
// was paid for.
func keepable(calls []llm.ToolCall) []llm.ToolCall {
	calls = slices.Clone(calls)
	for i := range calls {
		c := &calls[i]
		if len(c.Input) > maxInput || len(c.InputText) > maxInput {
			c.InputText, c.Input = fmt.Sprintf("%.200s… (%d bytes)", cmp.Or(string(c.Input), c.InputText), max(len(c.Input), len(c.InputText))), nil
		} else if _, err := canon.AppendJSON(nil, c.Input); c.Input != nil && err != nil {
			c.InputText, c.Input = strings.ToValidUTF8(string(c.Input), "\uFFFD"), nil
		}
	}
	return calls
}

var errNoEnd = errors.New("the model's stream ended before its answer was complete")
