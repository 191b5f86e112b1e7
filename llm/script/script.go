package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/llm"
)

// Answer is one answer in a script. The zero value is an answer with an empty reply.
type Answer struct {
	Reply llm.Reply
	// Err, if not nil, is the error that ends the answer after the reply. An *llm.HTTPError takes the place of the reply. Over
	// HTTP, an *llm.ProviderError is sent to the client, and any other error cuts the stream.
	Err error
	// Wait is the delay before the answer starts.
	Wait time.Duration
}

// Text returns an answer with the given text.
func Text(text string) Answer {
	return Answer{Reply: llm.Reply{Text: text}}
}

// Call returns an answer with one tool call. The call's ID is derived from the number of the answer.
func Call(name, input string) Answer {
	return Calls(llm.ToolCall{Name: name, Input: json.RawMessage(input)})
}

// Calls returns an answer with the given tool calls.
func Calls(calls ...llm.ToolCall) Answer {
	return Answer{Reply: llm.Reply{ToolCalls: calls}}
}

// JSON returns an answer whose text is the JSON of a value.
func JSON(v any) Answer {
	raw, err := json.Marshal(v)
	if err != nil {
		return Fail(fmt.Errorf("script: the answer is not JSON: %w", err))
	}
	return Text(string(raw))
}

// Fail returns an answer that ends with the given error.
func Fail(err error) Answer { return Answer{Err: err} }

// Status returns an answer with the given HTTP status and body.
func Status(status int, body string) Answer {
	return Fail(&llm.HTTPError{Status: status, Body: body})
}

// Model answers requests from its script, in order. It is safe for concurrent use.
type Model struct {
	mu       sync.Mutex
	next     func(n int, req *llm.Request) Answer
	requests []*llm.Request
}

// New returns a Model that returns the given answers one after the other. After the last answer, each request fails.
func New(answers ...Answer) *Model {
	return Func(func(n int, _ *llm.Request) Answer {
		if n >= len(answers) {
			return Fail(fmt.Errorf("script: request %d, but there are only %d answers", n+1, len(answers)))
		}
		return answers[n]
	})
}

// Func returns a Model that calls f for each answer, with the number of the request, counted from 0. The function is never called
// by two goroutines at once.
func Func(f func(n int, req *llm.Request) Answer) *Model { return &Model{next: f} }

// Requests returns all requests that the Model has received so far, in order.
func (m *Model) Requests() []*llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Info returns the Info of the scripted model.
func (m *Model) Info() llm.Info { return llm.Info{Provider: "script", Model: "script", Mode: llm.Mock} }

// Stream yields the next answer; see llm.Model.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a := m.answer(req)
		if err := retryafter.Sleep(ctx, a.Wait); err != nil {
			yield(llm.Delta{Reply: &llm.Reply{}}, err)
			return
		}
		var h *llm.HTTPError
		if errors.As(a.Err, &h) {
			yield(llm.Delta{Reply: &llm.Reply{}}, a.Err)
			return
		}
		reply := &a.Reply
		reply.StopReason = stopReason(reply, "stop", "tool_calls")
		if !yield(llm.Delta{Kind: llm.Start, Reply: &llm.Reply{RequestID: reply.RequestID}}, nil) {
			return
		}
		for _, d := range reply.Deltas() {
			if !yield(d, nil) {
				return
			}
		}
		switch {
		case ctx.Err() != nil:
			yield(llm.Delta{Reply: reply}, context.Cause(ctx))
		case a.Err != nil:
			yield(llm.Delta{Reply: reply}, a.Err)
		default:
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}

// answer stores a request and returns the answer to it. It gives an ID to each call that has none.
func (m *Model) answer(req *llm.Request) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.requests)
	m.requests = append(m.requests, clone(req))
	a := m.next(n, req)
	a.Reply.ToolCalls = slices.Clone(a.Reply.ToolCalls)
	for i := range a.Reply.ToolCalls {
		if call := &a.Reply.ToolCalls[i]; call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", n+1, i+1)
		}
	}
	return a
}

// stopReason returns the reply's own stop reason or, if it has none, the protocol's default: calls if the reply contains tool
// calls, otherwise text.
func stopReason(r *llm.Reply, text, calls string) string {
	switch {
	case r.StopReason != "":
		return r.StopReason
	case len(r.ToolCalls) > 0:
		return calls
	}
	return text
}

// clone returns a copy of a request, because the sender of the request may append to it later.
func clone(req *llm.Request) *llm.Request {
	c := *req
	c.Messages = slices.Clone(req.Messages)
	c.Tools = slices.Clone(req.Tools)
	return &c
}
