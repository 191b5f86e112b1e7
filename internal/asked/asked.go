// Package asked tells a call which request its capability has sent to a model.
package asked

import (
	"context"
	"slices"
	"sync"

	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/llm"
)

type key struct{}

// A Note records the first request that a capability has sent to a model.
type Note struct {
	mu      sync.Mutex
	request *llm.Request
}

// With returns a copy of ctx and a new Note, in which Tell, called with that context, records a request.
func With(ctx context.Context) (context.Context, *Note) {
	n := new(Note)
	return context.WithValue(ctx, key{}, n), n
}

// Tell records the request in the Note of ctx, unless there already is one.
func Tell(ctx context.Context, request *llm.Request) {
	n, ok := ctx.Value(key{}).(*Note)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.request == nil {
		first := *request
		first.Messages = slices.Clone(first.Messages)
		n.request = &first
	}
}

// Sent returns the recorded request, or nil if none was sent. It can be called while the capability is still working.
func (n *Note) Sent() *llm.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.request
}

// Before calls past.Ask with a model request without its token limit, which depends on the remaining budget.
func Before(ctx context.Context, m llm.Model, request *llm.Request) error {
	unbounded := *request
	unbounded.MaxTokens = 0
	return past.Ask(ctx, nil, llm.Name(m, request), unbounded)
}
