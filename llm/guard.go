package llm

import (
	"context"
	"fmt"
	"iter"

	"github.com/stonelayer/stone/budget"
)

// Guard returns a Model that calls m and watches its answers. The function watch makes a new Watcher for each channel of each
// attempt, at the first text of that channel. When a Watcher trips, Guard stops the stream and retries the request, with the
// partial answer and an explanation appended to the conversation; the consumer receives a Restart delta. After the given number
// of retries, the stream ends with a *RepetitionExhaustedError. If retries is negative, it ends with a *RepetitionTrippedError
// when a Watcher first trips.
func Guard(m Model, watch func() *Watcher, retries int) Model {
	return &guard{m, watch, retries}
}

type guard struct {
	model   Model
	watch   func() *Watcher
	retries int
}

// Check checks the configuration of the guarded model, if it is a Checker.
func (g *guard) Check() error {
	if c, ok := g.model.(Checker); ok {
		return c.Check()
	}
	return nil
}

// CheckParams returns the guarded model's error for the settings, if any.
func (g *guard) CheckParams(p Params) error { return CheckParams(g.model, p) }

// CheckMedia returns the guarded model's error for the media, if any.
func (g *guard) CheckMedia(role Role, m *Media) error {
	return CheckMedia(g.model, role, m)
}

// Info returns the guarded model's Info, or the zero Info if it is not an Informer.
func (g *guard) Info() Info {
	if i, ok := g.model.(Informer); ok {
		return i.Info()
	}
	return Info{}
}

// Most returns the most that the first call of the guarded model and all retries may cost together.
func (g *guard) Most(ctx context.Context, req *Request) budget.Bound {
	return Most(ctx, g.model, req).Times(max(g.retries, 0) + 1)
}

// Asks returns the maximum number of requests that the guarded model sends in all attempts together, or 0 if unknown.
func (g *guard) Asks() int { return requests(g.model) * (max(g.retries, 0) + 1) }

func (g *guard) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for retry := 0; ; retry++ {
			tripped := g.attempt(ctx, req, yield)
			if tripped == nil {
				return
			}
			var err error = tripped
			if retry >= g.retries {
				if g.retries >= 0 {
					err = &RepetitionExhaustedError{Attempts: g.retries, LastHit: &tripped.Hit, RequestID: tripped.RequestID}
				}
				yield(Delta{Reply: partialReply(tripped)}, err)
				return
			}
			if !yield(Delta{Kind: Restart, Err: err, Reply: partialReply(tripped)}, nil) {
				return
			}
			req = explain(req, tripped)
		}
	}
}

// attempt streams one answer through the watchers. It returns nil if no watcher tripped.
func (g *guard) attempt(ctx context.Context, req *Request, yield func(Delta, error) bool) *RepetitionTrippedError {
	a := &guardedAttempt{watch: g.watch, yield: yield} // one allocation instead of four for captured variables
	a.reset()
	g.model.Stream(ctx, req)(a.hear)
	return a.hit
}

// guardedAttempt is one attempt to obtain an answer.
type guardedAttempt struct {
	watch              func() *Watcher
	yield              func(Delta, error) bool
	response, thinking channel
	requestID          string
	hit                *RepetitionTrippedError
}

func (a *guardedAttempt) reset() {
	a.response, a.thinking = channel{name: "response"}, channel{name: "thinking"}
}

// hear passes a delta on to the consumer and the watchers, and reports whether the stream may continue.
func (a *guardedAttempt) hear(d Delta, err error) bool {
	if !a.yield(d, err) || err != nil {
		return false
	}
	switch d.Kind {
	case Text:
		a.hit = a.response.add(d.Text, a.watch)
	case Reasoning:
		a.hit = a.thinking.add(d.Text, a.watch)
	case Progress:
		if a.hit = a.response.tick(); a.hit == nil {
			a.hit = a.thinking.tick()
		}
	case Start:
		if d.Reply != nil {
			a.requestID = d.Reply.RequestID
		}
	case Restart:
		a.reset()
	}
	if a.hit != nil {
		a.hit.RequestID = a.requestID
	}
	return a.hit == nil
}

// channel is one of a stream's two texts, with its watcher.
type channel struct {
	name    string
	watcher *Watcher // nil before the first text, because most answers have no thinking
	text    []byte   // text received so far, unless the watcher's NGram keeps it
	buf     []byte
}

func (c *channel) add(text string, watch func() *Watcher) *RepetitionTrippedError {
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

func (c *channel) tick() *RepetitionTrippedError {
	if c.watcher == nil {
		return nil
	}
	c.watcher.Tick()
	return c.tripped()
}

func (c *channel) tripped() *RepetitionTrippedError {
	hit := c.watcher.Tripped()
	if hit == nil {
		return nil
	}
	partial := c.text
	if c.watcher.NGram != nil {
		partial = c.watcher.NGram.Text()
	}
	return &RepetitionTrippedError{Hit: *hit, Channel: c.name, Partial: string(partial)}
}

// explain returns a copy of req with two more messages: the partial answer, and the reason why it was stopped.
func explain(req *Request, tripped *RepetitionTrippedError) *Request {
	again := *req
	n := len(req.Messages)
	again.Messages = append(req.Messages[:n:n], Assistant(tripped.Partial), User(explanation(tripped)))
	return &again
}

func explanation(tripped *RepetitionTrippedError) string {
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

func partialReply(tripped *RepetitionTrippedError) *Reply {
	reply := &Reply{RequestID: tripped.RequestID}
	if tripped.Channel == "thinking" {
		reply.Reasoning = tripped.Partial
	} else {
		reply.Text = tripped.Partial
	}
	return reply
}
