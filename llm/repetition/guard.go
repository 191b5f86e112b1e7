package repetition

import (
	"context"
	"fmt"
	"iter"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// Guard returns a Model that asks m and watches its answers. The function watch makes a
// fresh Watcher for each channel of each attempt, at its first text. When one trips, Guard stops the stream
// and retries the request, with the partial answer and an explanation appended to its
// conversation; the consumer sees a Restart delta. After the given number of retries the
// stream ends with an *llm.RepetitionExhaustedError. With negative retries the first trip
// ends it with an *llm.RepetitionTrippedError.
func Guard(m llm.Model, watch func() *Watcher, retries int) llm.Model {
	return &guard{m, watch, retries}
}

type guard struct {
	model   llm.Model
	watch   func() *Watcher
	retries int
}

// Check checks the guarded model.
func (g *guard) Check() error {
	if c, ok := g.model.(llm.Checker); ok {
		return c.Check()
	}
	return nil
}

// CheckParams checks settings like the guarded model.
func (g *guard) CheckParams(p llm.Params) error { return llm.CheckParams(g.model, p) }

// CheckMedia checks media like the guarded model.
func (g *guard) CheckMedia(role llm.Role, m *llm.Media) error {
	return llm.CheckMedia(g.model, role, m)
}

// Info names the guarded model.
func (g *guard) Info() llm.Info {
	if i, ok := g.model.(llm.Informer); ok {
		return i.Info()
	}
	return llm.Info{}
}

// Most gives the bound of the guarded model, asked with every retry.
func (g *guard) Most(ctx context.Context, req *llm.Request) budget.Bound {
	return llm.Most(ctx, g.model, req).Times(max(g.retries, 0) + 1)
}

// Asks returns how often the guarded model is asked at most, 0 if that is not known.
func (g *guard) Asks() int { return llm.Asks(g.model) * (max(g.retries, 0) + 1) }

func (g *guard) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for retry := 0; ; retry++ {
			tripped := g.attempt(ctx, req, yield)
			if tripped == nil {
				return
			}
			var err error = tripped
			if retry >= g.retries {
				if g.retries >= 0 {
					err = &llm.RepetitionExhaustedError{Attempts: g.retries, LastHit: &tripped.Hit, RequestID: tripped.RequestID}
				}
				yield(llm.Delta{Reply: partialReply(tripped)}, err)
				return
			}
			if !yield(llm.Delta{Kind: llm.Restart, Err: err, Reply: partialReply(tripped)}, nil) {
				return
			}
			req = explain(req, tripped)
		}
	}
}

// attempt streams one answer through the watchers. It returns nil if no watcher tripped.
func (g *guard) attempt(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) *llm.RepetitionTrippedError {
	a := &attempt{watch: g.watch, yield: yield} // one allocation, where variables of a loop would be four
	a.reset()
	g.model.Stream(ctx, req)(a.hear)
	return a.hit
}

// attempt is one answer.
type attempt struct {
	watch              func() *Watcher
	yield              func(llm.Delta, error) bool
	response, thinking channel
	requestID          string
	hit                *llm.RepetitionTrippedError
}

func (a *attempt) reset() {
	a.response, a.thinking = channel{name: "response"}, channel{name: "thinking"}
}

// hear passes a delta on, and reports whether the stream may continue.
func (a *attempt) hear(d llm.Delta, err error) bool {
	if !a.yield(d, err) || err != nil {
		return false
	}
	switch d.Kind {
	case llm.Text:
		a.hit = a.response.add(d.Text, a.watch)
	case llm.Reasoning:
		a.hit = a.thinking.add(d.Text, a.watch)
	case llm.Progress:
		if a.hit = a.response.tick(); a.hit == nil {
			a.hit = a.thinking.tick()
		}
	case llm.Start:
		if d.Reply != nil {
			a.requestID = d.Reply.RequestID
		}
	case llm.Restart:
		a.reset()
	}
	if a.hit != nil {
		a.hit.RequestID = a.requestID
	}
	return a.hit == nil
}

// channel is one of the two texts of a stream and its watcher.
type channel struct {
	name    string
	watcher *Watcher // nil before the first text: most answers have no thinking
	text    []byte   // received so far, unless the watcher keeps it
	buf     []byte
}

func (c *channel) add(text string, watch func() *Watcher) *llm.RepetitionTrippedError {
	if c.watcher == nil {
		if c.watcher = watch(); c.watcher == nil {
			c.watcher = &Watcher{}
		}
	}
	if c.watcher.NGram == nil {
		c.text = append(c.text, text...)
	}
	c.buf = append(c.buf[:0], text...)
	c.watcher.Write(c.buf)
	return c.tripped()
}

func (c *channel) tick() *llm.RepetitionTrippedError {
	if c.watcher == nil {
		return nil
	}
	c.watcher.Tick()
	return c.tripped()
}

func (c *channel) tripped() *llm.RepetitionTrippedError {
	hit := c.watcher.Tripped()
	if hit == nil {
		return nil
	}
	partial := c.text
	if c.watcher.NGram != nil {
		partial = c.watcher.NGram.Text()
	}
	return &llm.RepetitionTrippedError{Hit: *hit, Channel: c.name, Partial: string(partial)}
}

// explain returns the request with two more turns: the partial answer, and the reason why
// it was stopped.
func explain(req *llm.Request, tripped *llm.RepetitionTrippedError) *llm.Request {
	again := *req
	n := len(req.Messages)
	again.Messages = append(req.Messages[:n:n], llm.Assistant(tripped.Partial), llm.User(explanation(tripped)))
	return &again
}

func explanation(tripped *llm.RepetitionTrippedError) string {
	where := "answer"
	if tripped.Channel == "thinking" {
		where = "thinking"
	}
	what := "continued without saying anything new"
	if window := tripped.Hit.Window; len(window) > 0 {
		what = fmt.Sprintf("was repeating this passage: %q", window)
	}
	return fmt.Sprintf("Your last turn was stopped because it got stuck: the %s %s. "+
		"Do not continue it. Answer the question again from the beginning, in a different and shorter way.", where, what)
}

func partialReply(tripped *llm.RepetitionTrippedError) *llm.Reply {
	reply := &llm.Reply{RequestID: tripped.RequestID}
	if tripped.Channel == "thinking" {
		reply.Reasoning = tripped.Partial
	} else {
		reply.Text = tripped.Partial
	}
	return reply
}
