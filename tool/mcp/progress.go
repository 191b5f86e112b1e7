package mcp

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/redact"
)

const (
	// progressPause is the least time between two events of a call. What a server
	// reports in between is dropped.
	progressPause = 100 * time.Millisecond
	// maxProgress bounds the message of an event, in bytes.
	maxProgress = 500
)

// A reporter sends the progress that servers report to the runs whose calls it concerns.
type reporter struct {
	mu    sync.Mutex
	last  uint64
	calls map[string]*reported // by progress token
}

// reported is a call in flight.
type reported struct {
	at      event.Place
	secrets *redact.Set
	begun   time.Time
	mu      sync.Mutex // held while an event is sent
	sent    time.Time
}

// follow makes a call report its progress to the place of ctx in a run. The function it
// returns ends that. If nobody wants to know, the server is not asked to report.
func (r *reporter) follow(ctx context.Context, call *sdk.CallToolParams) (end func()) {
	at := event.At(ctx)
	if !at.Wants(slog.LevelInfo) {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	token := strconv.FormatUint(r.last, 10)
	call.SetProgressToken(token)
	if r.calls == nil {
		r.calls = map[string]*reported{}
	}
	r.calls[token] = &reported{at: at, secrets: redact.From(ctx), begun: time.Now()}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, token)
	}
}

// hear takes what a server reports.
func (r *reporter) hear(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
	token, _ := n.Params.ProgressToken.(string)
	r.mu.Lock()
	c := r.calls[token]
	r.mu.Unlock()
	if c == nil {
		return // the call is over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.sent.IsZero() && now.Sub(c.sent) < progressPause {
		return
	}
	c.sent = now
	c.at.Send(event.Progress{
		Elapsed: now.Sub(c.begun), Message: redact.Cut(c.secrets.Clean(n.Params.Message), maxProgress),
		Done: n.Params.Progress, Total: n.Params.Total,
	})
}
