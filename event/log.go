package event

import (
	"context"
	"log/slog"
)

// Log returns a Watcher that passes events to a slog.Handler as records: the message is the event's type, and the attributes are
// trace-id, span-id and parent-span-id, request-id in a run that answers a request, and [Event.Attrs].
//
// The contents of requests, responses and tool calls are in a second record at level debug, whose message is the event's type
// followed by "-payload". Deltas, retractions, starts of tool calls and replayed responses are left out.
//
// Errors that the handler returns are dropped, because handlers report their own errors.
func Log(h slog.Handler) Watcher {
	if h == nil {
		return nil
	}
	return logger{h}
}

type logger struct{ handler slog.Handler }

func (l logger) Wants(ctx context.Context, level slog.Level) bool {
	return level > LevelDelta && l.handler.Enabled(ctx, level)
}

func (l logger) Watch(ctx context.Context, e Event) {
	switch d := e.Data.(type) {
	case Delta, Retracted, ToolStarted:
		return
	case ModelResponse:
		if d.Replayed {
			return
		}
	case Custom:
		l.record(ctx, e, e.Level(), e.Type(), d.Attrs)
		return
	}
	attrs := e.Attrs()
	l.record(ctx, e, e.Level(), e.Type(), attrs)
	if l.handler.Enabled(ctx, slog.LevelDebug) {
		if all := e.appendAttrs(attrs, true); len(all) > len(attrs) {
			l.record(ctx, e, slog.LevelDebug, e.Type()+"-payload", all)
		}
	}
}

func (l logger) record(ctx context.Context, e Event, level slog.Level, name string, attrs []slog.Attr) {
	r := slog.NewRecord(e.Time, level, name, 0)
	r.AddAttrs(slog.String("trace-id", e.Run), slog.String("span-id", e.Span), slog.String("parent-span-id", e.Parent))
	if e.Request != "" {
		r.AddAttrs(slog.String("request-id", e.Request))
	}
	r.AddAttrs(attrs...)
	_ = l.handler.Handle(ctx, r)
}
