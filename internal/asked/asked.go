// Package asked tells a call what its capability has sent to a model.
package asked

import (
	"context"
	"slices"
	"sync"

	"github.com/stonelayer/stone/llm"
)

type key struct{}

// A Note has the first request that was sent.
type Note struct {
	mu      sync.Mutex
	request *llm.Request
}

// With returns a context in which Tell writes to the note.
func With(ctx context.Context) (context.Context, *Note) {
	n := new(Note)
	return context.WithValue(ctx, key{}, n), n
}

// Tell notes a request, unless an earlier one is noted.
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

// Sent returns the request, nil if none was sent. The capability may still be working.
func (n *Note) Sent() *llm.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.request
}
