package eventtest

import (
	"context"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/event"
)

// Context returns a context whose place (see event.At) passes events to w without a run. It is meant for tests of a single
// capability or model.
func Context(ctx context.Context, w event.Watcher) context.Context {
	return context.WithValue(ctx, event.Key{}, sender{event.NewStream(ctx, "test", "", time.Now, w)})
}

type sender struct{ stream *event.Stream }

func (s sender) Wants(level slog.Level) bool { return s.stream.Wants(level) }
func (s sender) Send(d event.Data)           { s.stream.Send(event.Event{Path: "test", Span: "test", Data: d}) }
func (s sender) Retract(reason string)       { s.Send(event.Retracted{Reason: reason}) }
