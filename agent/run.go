package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// pausedTurn is the stop reason with which a provider pauses a turn and expects the same messages again.
const pausedTurn = "pause_turn"

// run is the state of one agent run.
type run struct {
	*agent
	onion
	dag      dag.DAG
	start    Context      // the context at the start of every turn
	base     dag.DAG      // the DAG on which tool calls add nodes
	lanes    []dag.DAG    // the DAGs with the nodes of tool calls
	room     atomic.Int64 // the remaining space for kept results, in bytes
	turn     int
	limit    int
	repaired bool // whether an answer was sent back and no valid answer has followed
	told     bool // whether the model was told that it wrote a call as text
	texts    int  // how often the model wrote a call as text
	repeats  int  // how many requests were repeated because the answer repeated itself
	healed   int
	paused   bool
	models
	answer event.Place // the place at which the last answer was streamed
	prefix *llm.Prefix // what the last reply reported about its request
	called bool        // whether the model has called a tool
	marks  marked.Set  // the marks that tools have added
	thread string      // the name of the conversation
}

// run is the body of the leaf.
func (a *agent) run(ctx context.Context, d dag.DAG) (*dag.Node, error) {
	r := &run{agent: a, onion: onion{events: eventsOf(ctx), offered: a.offered}, dag: d, limit: a.cfg.MaxTurns}
	r.inner = r.ask
	if at := stone.In(ctx); !a.cfg.NoCache {
		r.thread = at.RunID() + " " + at.Path()
	}
	r.room.Store(maxAllKept)
	ended := r.started()
	n, err := inTime(ctx, r.work)
	if ended != nil {
		ended(err)
	}
	return n, err
}

// work takes turns until a draft is accepted.
func (r *run) work(ctx context.Context) (*dag.Node, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if err := r.admit(ctx); err != nil {
		return nil, err
	}
	conversation := r.start.Messages
	r.opened(ctx)
	for outer := ctx; ; {
		ctx := marked.With(outer, r.marks)
		if r.turn == r.limit {
			return nil, failure(reasons.MaxTurns, nil, "not done after %d turns: raise MaxTurns, or look at its last turns in the trace", r.turn)
		}
		r.turn++
		c := r.nextTurn(conversation)
		if err := r.onion.run(ctx, c, r.cfg.Use); err != nil {
			return nil, err
		}
		if c.Reply == nil {
			return nil, failure(kind.Error, nil, "turn %d has no reply: a middleware must call next, or set Reply itself", r.turn)
		}
		conversation = c.Messages
		next, err := r.decide(ctx, c)
		if err != nil {
			return nil, err
		}
		if next.done {
			return r.finish(ctx, next.draft, conversation)
		}
		conversation = append(conversation, next.say...)
	}
}

// nextTurn returns the context of the next turn.
func (r *run) nextTurn(conversation []llm.Message) *Context {
	c := r.start
	c.Turn, c.Messages, c.prefix = r.turn, conversation, r.prefix
	if choice := r.cfg.Params.ToolChoice; r.called && choice != "" && choice != "none" {
		free := r.cfg.Params
		free.ToolChoice = "auto" // otherwise the agent could never end
		c.Params = &free
	}
	return &c
}

// open returns the context with which every turn starts. A recorded opening is reused even if the prompts now render differently.
func (r *run) open(ctx context.Context) error {
	c := &r.start
	*c = Context{models: &r.models, DAG: r.dag, Agent: r.name, Format: r.draft.form.Format(), Model: r.cfg.Model, MaxTokens: r.cfg.MaxTokens, Params: &r.cfg.Params}
	r.window = llm.SpecOf(ctx, r.model, &llm.Request{Model: r.cfg.Model}).Window
	fresh := false
	o, err := stone.Value(ctx, "opening", func(ctx context.Context) (opening, error) {
		fresh = true
		return r.render(ctx)
	})
	if err != nil {
		return err
	}
	if !fresh {
		for i := range o.Messages {
			o.Messages[i].ToolCalls = withoutNull(o.Messages[i].ToolCalls)
		}
		recorded := &o
		now, err := r.render(ctx)
		why := "the prompt changed since the conversation began, which continues with the old one"
		if err != nil {
			event.At(ctx).Send(event.Notice{Code: terms.PromptChanged, Text: why + ": the new one fails: " + err.Error()})
		} else if before, after := recorded.text(), now.text(); before != after {
			event.At(ctx).Send(event.Notice{Code: terms.PromptChanged, Text: why + "\n" + text.Changed(before, after)})
		}
	}
	c.System, c.Messages = o.System, o.Messages
	for i := range o.Messages {
		if o.Messages[i].Role == llm.RoleUser {
			c.question = &o.Messages[i]
		}
	}
	return nil
}

// opening holds an agent's rendered prompts and is the first record of its conversation. Its tools and parameters are only for
// people who read the conversation; the agent uses the program's tools and parameters.
type opening struct {
	System   string        `json:"system,omitempty"`
	Messages []llm.Message `json:"messages"`
	Tools    []string      `json:"tools,omitempty"`
	Params   *llm.Params   `json:"params,omitempty"`
}

// render makes the opening.
func (r *run) render(ctx context.Context) (o opening, err error) {
	if o.System, err = prompt(r.cfg.System, r.dag); err != nil {
		return o, err
	}
	user, err := prompt(r.cfg.User, r.dag)
	if err != nil {
		return o, err
	}
	said, err := read(r.cfg.Conversation, r.dag)
	if err != nil {
		return o, err
	}
	media, err := read(r.cfg.Media, r.dag)
	if err != nil {
		return o, err
	}
	// If an undeclared read has cancelled the context, no request must be sent.
	if err := ctx.Err(); err != nil {
		return o, err
	}
	o.Tools, o.Params = r.names, r.params
	o.Messages = append(make([]llm.Message, 0, len(said)+8), said...)
	if user != "" || len(media) > 0 {
		o.Messages = append(o.Messages, llm.User(user, media...))
	}
	return o, nil
}

// text returns the opening in a readable form.
func (o *opening) text() string {
	var b strings.Builder
	b.WriteString(o.System)
	for i := range o.Messages {
		b.WriteString("\n" + transcript(o.Messages[i:i+1]))
	}
	return b.String()
}

func prompt(p dag.Reader[string], d dag.DAG) (string, error) {
	text, err := read(p, d)
	return utf8Only(text), err
}

// read returns the value that r reads, or the zero value if r is nil.
func read[T any](r dag.Reader[T], d dag.DAG) (v T, err error) {
	if r == nil {
		return v, nil
	}
	return r.From(d)
}

// next says what follows a turn: either another turn, or the end of the agent with its draft.
type next struct {
	done  bool
	draft any
	say   []llm.Message // the messages to add before the next turn
}

// decide chooses the next action after a turn.
func (r *run) decide(ctx context.Context, c *Context) (next, error) {
	if r.paused = c.Reply.StopReason == pausedTurn; r.paused {
		return next{}, nil
	}
	switch d := r.cfg.Decide(*c, c.Advice); d.Action {
	case Loop:
		return next{}, nil
	case Halt:
		reason := cmp.Or(d.Reason, "no reason given")
		if d.Source != "" {
			reason = d.Source + ": " + reason
		}
		return next{}, failure(reasons.Halted, nil, "%s", reason)
	case Continue:
		if name := textCall(c.Reply, c.Tools); name != "" && d.Answer == "" && !r.told {
			r.told = true
			if r.texts++; r.texts <= maxExtra {
				r.limit++
			}
			r.answer.Retract("the call of " + name + " is written as text")
			return next{say: []llm.Message{llm.User(fmt.Sprintf("The call of the tool %q was written as text, so it was not run. Call it as a tool. If you meant no call, answer again without one at the end.", name))}}, nil
		}
		draft := c.Reply
		if d.Answer != "" {
			draft = &llm.Reply{Text: d.Answer, RequestID: draft.RequestID}
		}
		return r.judge(ctx, draft)
	default:
		return next{}, failure(kind.Error, nil, "the decide function returned the action %q: want Continue, Loop or Halt", d.Action)
	}
}

// judge reads the draft and runs the adversary on it.
func (r *run) judge(ctx context.Context, reply *llm.Reply) (next, error) {
	if reply.Refused() {
		return next{}, failure(reasons.ModelRefused, nil, "the model refused to answer (stop reason %q)", reply.StopReason)
	}
	v, wrong := r.draft.read(ctx, reply)
	switch {
	case wrong != nil && r.repaired:
		return next{}, wrong.failure
	case wrong != nil:
		r.repaired = true
		r.limit++
		r.answer.Retract("the answer does not fit: " + wrong.failure.Error())
		return next{say: []llm.Message{llm.User(wrong.tell)}}, nil
	}
	r.repaired = false
	if !r.cfg.Adversary.IsZero() {
		if say, err := r.vote(ctx, v); say != nil || err != nil {
			if say != nil {
				r.answer.Retract(say[0].Text())
			}
			return next{say: say}, err
		}
	}
	return next{done: true, draft: v}, nil
}

// finish returns the agent's node for an accepted draft.
func (r *run) finish(ctx context.Context, v any, conversation []llm.Message) (n *dag.Node, err error) {
	if r.cfg.Finalize.run != nil {
		if v, err = r.cfg.Finalize.run(v); err != nil {
			return nil, err
		}
	}
	full := r.dag
	if len(r.lanes) > 0 {
		if full, err = stone.In(ctx).Keep(r.base, r.lanes...); err != nil {
			return nil, err
		}
	}
	content, err := r.content(v, conversation)
	if err == nil {
		n, err = dag.NewNode(dag.Spec{Type: r.out.Name(), Content: content, Parents: full.Next(), Meta: r.meta()})
	}
	if err != nil {
		return nil, failure(kind.BadContent, err, "%v", err)
	}
	return n, nil
}

// meta returns the meta of the agent's node, which contains its usage.
func (r *run) meta() map[string]string {
	meta := map[string]string{"turns": strconv.Itoa(r.turn), terms.Beside: conversationField}
	if n := r.usage.InputTokens; n > 0 {
		meta["input-tokens"] = strconv.Itoa(n)
	}
	if n := r.usage.OutputTokens; n > 0 {
		meta["output-tokens"] = strconv.Itoa(n)
	}
	if n := r.usage.CacheReadTokens; n > 0 {
		meta["cache-read-tokens"] = strconv.Itoa(n)
	}
	if n := r.usage.CacheWriteTokens; n > 0 {
		meta["cache-write-tokens"] = strconv.Itoa(n)
	}
	if usd := r.usage.USD; usd > 0 {
		meta["usd"] = strconv.FormatFloat(usd, 'g', -1, 64)
	}
	return meta
}

// failure returns a failure whose reason does not quote its cause.
func failure(k kind.Kind, cause error, format string, args ...any) error {
	return &stone.Failure{Kind: k, Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// modelFailure returns the failure for an error of the model. If ctx is done, it returns the error of ctx, because then the run
// has ended and the model has not failed.
func modelFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, kind.Waiting) { // a capability behind a call.Model is asking a person
		return err
	}
	if ended, ok := errors.AsType[fault.Ender](err); ok { // an account is exhausted, perhaps one of a wrapper around the model
		return ended
	}
	if fault.Kind(err) == string(reasons.NotAdmitted) { // the Admit of a call.Model has rejected the request
		return failure(reasons.NotAdmitted, &rejected{err}, "%v", err)
	}
	if llm.TooLong(err) {
		return failure(reasons.Overflow, &modelError{err}, "%v%s", err, toShorten)
	}
	k := reasons.ModelFailed
	if _, empty := errors.AsType[*llm.EmptyResponseError](err); empty {
		k = reasons.EmptyResponse
	}
	_, tripped := errors.AsType[*llm.RepetitionTrippedError](err)
	_, exhausted := errors.AsType[*llm.RepetitionExhaustedError](err)
	if tripped || exhausted {
		k = reasons.Degenerate
	}
	return failure(k, &modelError{err}, "%v", err)
}

// modelError is a model's error with the methods that stone.Retry uses.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// Retryable returns false if the provider rejected the request and would reject it again. It returns true for a bad answer, which
// may be better next time.
func (e *modelError) Retryable() bool {
	_, status := errors.AsType[*llm.HTTPError](e.error)
	_, reported := errors.AsType[*llm.ProviderError](e.error)
	_, decided := errors.AsType[fault.Retrier](e.error)
	return !status && !reported && !decided || llm.Retryable(e.error)
}

// RetryAfter returns the time that the server has asked clients to wait before another request.
func (e *modelError) RetryAfter() time.Duration {
	if h, ok := errors.AsType[*llm.HTTPError](e.error); ok {
		return h.RetryAfter
	}
	return 0
}

// utf8Only returns s with invalid UTF-8, which JSON does not permit, replaced.
func utf8Only(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
