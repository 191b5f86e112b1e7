package mcp

import (
	"context"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/redact"
)

// A reporter passes the progress reports of servers on to their runs.
type reporter struct {
	mu    sync.Mutex
	last  uint64
	calls map[string]reported // the calls in flight, by progress token
}

// reported describes a call in flight.
type reported struct {
	to      *event.Reporter
	secrets *redact.Set
}

// follow makes the server report the progress of a call to the step of ctx, until the returned function is called. If the run has
// no watcher, follow does not request reports.
func (r *reporter) follow(ctx context.Context, call *sdk.CallToolParams) (end func()) {
	to := event.At(ctx).Report()
	if to == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	token := strconv.FormatUint(r.last, 10)
	call.SetProgressToken(token)
	if r.calls == nil {
		r.calls = map[string]reported{}
	}
	r.calls[token] = reported{to, redact.From(ctx)}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, token)
	}
}

// hear receives a server's reports. It drops reports about finished calls.
func (r *reporter) hear(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
	token, _ := n.Params.ProgressToken.(string)
	r.mu.Lock()
	c := r.calls[token]
	r.mu.Unlock()
	if c.to != nil {
		c.to.Progress(c.secrets.Clean(n.Params.Message), n.Params.Progress, n.Params.Total)
	}
}
