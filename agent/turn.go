package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// onion runs the rings from the outermost to the model and back.
func (r *run) onion(ctx context.Context, c Context, rings []Middleware) (Context, error) {
	for i, m := range rings {
		if m.Guard != nil && !m.Guard(c) {
			r.skipped(ctx, c, m.Name)
			continue
		}
		r.entered(ctx, c, m.Name)
		if m.Tool != nil {
			c = c.Offer(*m.Tool)
		}
		if m.Wrap != nil {
			return m.Wrap(ctx, c, func(ctx context.Context, c Context) (Context, error) {
				return r.onion(ctx, c, rings[i+1:])
			})
		}
	}
	return r.ask(ctx, c)
}

// ask is the heart of the onion: it asks the model and runs the calls of its
// answer.
func (r *run) ask(ctx context.Context, c Context) (Context, error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	if err := r.granted(c.Tools); err != nil {
		return c, err
	}
	// Servers take a conversation that ends with the model's own words for one
	// that it is to go on with in the same breath, and some refuse it. A paused
	// turn is the one that is meant so.
	if n := len(c.Messages); n == 0 || c.Messages[n-1].Role == llm.RoleAssistant && !r.paused {
		c = c.Say(llm.User("Continue."))
	}
	reply, err := r.recall(ctx, c)
	if err != nil {
		return c, err
	}
	c.Reply = reply
	c.Messages = append(c.Messages, reply.Message())
	if len(reply.ToolCalls) == 0 {
		return c, nil
	}
	return r.dispatch(ctx, c)
}

// granted reports a tool that does more than the agent has declared, which is
// what a run's grant was compared with.
func (r *run) granted(tools []Tool) error {
	for _, t := range tools {
		for _, e := range t.Effects {
			if !slices.Contains(r.effects, e) {
				return failure(kind.Error, nil, "the tool %q has the effect %q, which the agent does not declare: add it to Effects of the middleware that offers it", t.Name, e)
			}
		}
	}
	return nil
}

// turnRecord is what is recorded of a turn.
type turnRecord struct {
	Prompts string     `json:"prompts,omitempty"` // in the first turn
	Reply   *llm.Reply `json:"reply"`
}

// recall asks the model, or takes its answer from the record of the run.
func (r *run) recall(ctx context.Context, c Context) (*llm.Reply, error) {
	live := false
	rec, err := stone.Step(ctx, "turn-"+strconv.Itoa(c.Turn), func(ctx context.Context) (turnRecord, error) {
		live = true
		reply, err := r.stream(ctx, c)
		if err != nil {
			return turnRecord{}, err
		}
		rec := turnRecord{Reply: reply}
		if c.Turn == 1 {
			rec.Prompts = r.prompts
		}
		return rec, nil
	})
	if err != nil {
		return nil, err
	}
	if !live {
		if rec.Reply == nil || c.Turn == 1 && rec.Prompts != r.prompts {
			return nil, failure(kind.Replay, nil, "the recorded turn was asked with other prompts: prompts must follow from the DAG, and the agent's stone.Version changes with them")
		}
		r.see(c.Turn, llm.Delta{Kind: llm.Done, Reply: rec.Reply})
	}
	return restored(rec.Reply), nil
}

// restored makes cut-off arguments nil again, which JSON reads back as null.
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

var errNoEnd = errors.New("the model's stream ended before its answer was whole")

// stream asks the model.
func (r *run) stream(ctx context.Context, c Context) (*llm.Reply, error) {
	req := &llm.Request{Model: c.Model, System: c.System, Messages: slices.Clip(c.Messages), MaxTokens: c.MaxTokens, ResponseFormat: c.Format}
	if len(c.Tools) > 0 {
		req.Tools = make([]llm.Tool, len(c.Tools))
		for i, t := range c.Tools {
			req.Tools[i] = t.Tool
		}
	}
	answered := r.asked(ctx, c.Turn, req)
	reply, err := r.collect(ctx, c.Turn, req)
	if err == nil && reply.StopReason != pausedTurn && blank(reply) {
		err = &llm.EmptyResponseError{StopReason: reply.StopReason, RequestID: reply.RequestID}
	}
	if answered != nil {
		answered(reply, err)
	}
	if err != nil {
		return nil, modelFailure(ctx, err)
	}
	return reply, nil
}

func blank(r *llm.Reply) bool {
	return r.Refusal == "" && len(r.ToolCalls) == 0 && strings.TrimSpace(r.Text) == ""
}

// collect consumes the stream to its end.
func (r *run) collect(ctx context.Context, turn int, req *llm.Request) (*llm.Reply, error) {
	for d, err := range r.model.Stream(ctx, req) {
		r.see(turn, d)
		if err != nil {
			return nil, err
		}
		switch d.Kind {
		case llm.Done:
			if d.Reply == nil {
				return nil, fmt.Errorf("%w: its Done delta has no reply", errNoEnd)
			}
			return d.Reply, nil
		case llm.Progress, llm.Restart:
			r.progress(ctx, turn, d)
		}
	}
	return nil, errNoEnd
}
