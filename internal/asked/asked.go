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

// A Note holds the first request that was sent.
type Note struct {
	mu      sync.Mutex
	request *llm.Request
}

// With returns a context in which Tell writes to the note.
func With(ctx context.Context) (context.Context, *Note) {
	n := new(Note)
	return context.WithValue(ctx, key{}, n), n
}

// Tell notes the first request.
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

// Sent returns the request, or nil if none was sent. The capability may still be working.
func (n *Note) Sent() *llm.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.request
}

// Before is past.Ask for a model request. It ignores the token limit, which depends on the remaining budget.
func Before(ctx context.Context, m llm.Model, request *llm.Request) error {
	unbounded := *request
	unbounded.MaxTokens = 0
	return past.Ask(ctx, nil, llm.Name(m, request), unbounded)
}
