package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/llm"
)

// A Delta is a piece of what a model says in a turn of an agent.
type Delta struct {
	Agent string // the name of the ashlar
	Path  string // its address in the run
	Turn  int
	// Delta is the piece itself. A Done delta ends the turn and holds the whole
	// reply. A turn that is taken from the record of the run is that delta alone.
	llm.Delta
}

type observerKey struct{}

// WithObserver returns a context for stone.Run in which observe sees what all
// agents of the run hear from their models, as it comes. It is called from
// several goroutines at once when agents work side by side, and holds up the
// agent until it returns.
func WithObserver(ctx context.Context, observe func(Delta)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// events sends what happens to those who want to know.
type events struct {
	info, debug bool
	observe     func(Delta)
	path        string // of the agent
}

func eventsOf(ctx context.Context) events {
	e := events{info: stone.Enabled(ctx, slog.LevelInfo), debug: stone.Enabled(ctx, slog.LevelDebug)}
	e.observe, _ = ctx.Value(observerKey{}).(func(Delta))
	if e.observe != nil || e.info {
		e.path = stone.Path(ctx)
	}
	return e
}

func (r *run) see(turn int, d llm.Delta) {
	if r.observe != nil {
		r.observe(Delta{Agent: r.name, Path: r.path, Turn: turn, Delta: d})
	}
}

// since is how long ago that was.
func since(begun time.Time) slog.Attr {
	return slog.Duration("elapsed", time.Since(begun).Round(time.Microsecond))
}

// started sends agent-ashlar-start and returns what sends agent-ashlar-end, nil
// if nobody listens.
func (r *run) started(ctx context.Context) func(error) {
	if !r.info {
		return nil
	}
	begun, name := time.Now(), slog.String("ashlar-name", r.name)
	stone.Event(ctx, slog.LevelInfo, "agent-ashlar-start", name)
	return func(err error) {
		attrs := []slog.Attr{name, slog.Bool("ok", err == nil), slog.Int("turns", r.turn), since(begun)}
		stone.Event(ctx, slog.LevelInfo, "agent-ashlar-end", append(attrs, tokens(r.usage)...)...)
	}
}

func tokens(u llm.Usage) []slog.Attr {
	var attrs []slog.Attr
	if u.InputTokens != nil {
		attrs = append(attrs, slog.Int("input-tokens", *u.InputTokens))
	}
	if u.OutputTokens != nil {
		attrs = append(attrs, slog.Int("output-tokens", *u.OutputTokens))
	}
	return attrs
}

// asking sends api-call, with what is asked as an event of its own at level
// debug, and returns what sends api-response.
func (r *run) asking(ctx context.Context, turn int, req *llm.Request) func(*llm.Reply, error) {
	if !r.info {
		return nil
	}
	model := req.Model
	if informer, ok := r.model.(llm.Informer); ok && model == "" {
		model = informer.Info().Model
	}
	where := []slog.Attr{slog.String("ashlar-name", r.name), slog.Int("turn-number", turn), slog.String("model", model)}
	with := func(attrs ...slog.Attr) []slog.Attr { return append(where[:len(where):len(where)], attrs...) }
	stone.Event(ctx, slog.LevelInfo, "api-call", with(slog.Int("message-count", len(req.Messages)))...)
	if r.debug {
		stone.Event(ctx, slog.LevelDebug, "api-call-payload", with(
			slog.String("system", req.System), slog.Any("messages", req.Messages), slog.Any("tools", req.Tools))...)
	}
	begun := time.Now()
	return func(reply *llm.Reply, err error) {
		attrs := with(slog.Bool("ok", err == nil), since(begun))
		if reply != nil {
			attrs = append(attrs, tokens(reply.Usage)...)
			attrs = append(attrs, slog.String("stop-reason", reply.StopReason), slog.Int("tool-call-count", len(reply.ToolCalls)))
		}
		stone.Event(ctx, slog.LevelInfo, "api-response", attrs...)
		if r.debug && reply != nil {
			stone.Event(ctx, slog.LevelDebug, "api-response-payload", with(
				slog.String("text", reply.Text), slog.String("reasoning", reply.Reasoning), slog.String("refusal", reply.Refusal),
				slog.Any("tool-calls", reply.ToolCalls))...)
		}
	}
}

// progress tells that an answer takes its time, or begins anew.
func (r *run) progress(ctx context.Context, turn int, d llm.Delta) {
	attrs := []slog.Attr{slog.String("ashlar-name", r.name), slog.Int("turn-number", turn)}
	if d.Kind == llm.Progress {
		stone.Event(ctx, slog.LevelInfo, "streaming-progress", append(attrs, slog.Duration("elapsed", d.Elapsed))...)
		return
	}
	if d.Err != nil {
		attrs = append(attrs, slog.String("error", d.Err.Error()))
	}
	stone.Event(ctx, slog.LevelWarn, "api-restart", append(attrs, slog.Duration("wait", d.Wait))...)
}

func (r *run) entered(ctx context.Context, c Context, name string) { r.middleware(ctx, c, name, true) }
func (r *run) skipped(ctx context.Context, c Context, name string) { r.middleware(ctx, c, name, false) }

func (r *run) middleware(ctx context.Context, c Context, name string, takesPart bool) {
	if r.debug {
		stone.Event(ctx, slog.LevelDebug, "middleware-run", slog.String("ashlar-name", r.name),
			slog.Int("turn-number", c.Turn), slog.String("middleware", name), slog.Bool("active", takesPart))
	}
}

// dispatched sends tool-dispatch, with what the tool was given and what it gave
// back as an event of its own at level debug.
func (r *run) dispatched(ctx context.Context, j *job, o outcome) {
	if !r.info {
		return
	}
	attrs := []slog.Attr{
		slog.String("ashlar-name", r.name), slog.String("path", r.path), slog.Int("turn-number", j.turn), slog.Int("position", j.position),
		slog.String("tool-name", j.call.Name), slog.Bool("ok", !o.Failed), since(j.begun),
	}
	stone.Event(ctx, slog.LevelInfo, "tool-dispatch", attrs...)
	if !r.debug {
		return
	}
	input, meta := j.call.Input, o.Meta
	if input == nil {
		input, _ = json.Marshal(j.call.InputText) // a string always has JSON
	}
	if meta == nil {
		meta = json.RawMessage("{}")
	}
	stone.Event(ctx, slog.LevelDebug, "tool-dispatch-payload", append(attrs,
		slog.Any("input", input), slog.String("result-text", o.Text), slog.Any("result-meta", meta))...)
}

// panicked tells of a panic in a tool, of which the model reads only the value.
func (r *run) panicked(ctx context.Context, tool string, value any, stack []byte) {
	stone.Event(ctx, slog.LevelError, "tool-panic", slog.String("ashlar-name", r.name),
		slog.String("tool-name", tool), slog.String("error", fmt.Sprint(value)), slog.String("stack", string(stack)))
}
