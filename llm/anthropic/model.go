package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// errPaused reports a turn that was still paused after Config.MaxContinuations requests.
var errPaused = errors.New("anthropic: the turn is still paused; raise Config.MaxContinuations")

// caller is the Model without its guard.
type caller struct{ *Model }

func (c caller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		t := turn{caller: c, req: req, yield: yield}
		for n := 0; t.part(ctx); n++ {
			if n == c.config.MaxContinuations {
				yield(llm.Delta{Reply: t.reply}, errPaused)
				return
			}
		}
	}
}

// turn is an answer that consists of one or more parts.
type turn struct {
	caller caller
	req    *llm.Request
	yield  func(llm.Delta, error) bool
	reply  *llm.Reply // the parts so far
}

// part streams one part, and reports whether the turn was paused and must continue.
func (t *turn) part(ctx context.Context) bool {
	req := *t.req
	strict := false
	if n := len(req.Messages); t.reply != nil {
		req.Messages = append(req.Messages[:n:n], t.reply.Message())
	}
	reply := t.caller.Ask(ctx, &req, wire.Question{
		Fields: func(req *llm.Request, model string, way wire.Way) (object, error) {
			strict = len(req.Tools) > 0 && t.caller.strict()
			return t.caller.fields(req, model, way)
		},
		Decoder: func(id string) wire.Decoder { return newDecoder(id) },
		Relax: func(err error) bool {
			relax := strict && refusesStrict(err)
			if relax {
				t.caller.loose.Store(true)
			}
			return relax
		},
	}, t.pass)
	if reply == nil {
		return false
	}
	t.reply = t.join(reply)
	if reply.StopReason == "pause_turn" && t.caller.config.MaxContinuations >= 0 {
		return true
	}
	t.yield(llm.Delta{Kind: llm.Done, Reply: t.reply}, nil)
	return false
}

// pass yields a delta of a part as a delta of the whole turn.
func (t *turn) pass(d llm.Delta, err error) bool {
	if t.reply == nil {
		return t.yield(d, err)
	}
	switch {
	case err != nil:
		d.Reply = t.join(d.Reply)
	case d.Kind == llm.ToolCallStart, d.Kind == llm.ToolInput:
		d.Index += len(t.reply.ToolCalls)
	case d.Kind == llm.Restart:
		if !t.yield(d, nil) {
			return false
		}
		// Only this part is void, so the earlier parts are yielded again.
		for _, d := range t.reply.Deltas() {
			if !t.yield(d, nil) {
				return false
			}
		}
		return true
	}
	return t.yield(d, err)
}

// join returns one reply that contains the parts so far and the next part.
func (t *turn) join(next *llm.Reply) *llm.Reply {
	if t.reply == nil {
		return next
	}
	sum := *next
	sum.Text = t.reply.Text + next.Text
	sum.Reasoning = t.reply.Reasoning + next.Reasoning
	sum.Refusal = t.reply.Refusal + next.Refusal
	sum.ToolCalls = append(t.reply.ToolCalls[:len(t.reply.ToolCalls):len(t.reply.ToolCalls)], next.ToolCalls...)
	sum.Sources = append(t.reply.Sources[:len(t.reply.Sources):len(t.reply.Sources)], next.Sources...)
	sum.Usage = t.reply.Usage.Add(next.Usage)
	blocks := append(assistantBlocks(t.reply.Message()), assistantBlocks(next.Message())...)
	if raw, err := json.Marshal(blocks); err == nil { // they have been decoded from JSON
		sum.Metadata = maps.Clone(next.Metadata)
		if sum.Metadata == nil {
			sum.Metadata = map[string]json.RawMessage{}
		}
		sum.Metadata[contentKey] = raw
	}
	return &sum
}
