package otel

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/internal/spans"
)

// NewProvider returns a provider that sends spans in batches to a collector over OTLP/HTTP. OpenTelemetry's environment variables
// and the options configure it. Call its method Shutdown at the end to send the spans that are still queued.
func NewProvider(ctx context.Context, service string, opts ...otlptracehttp.Option) (*sdk.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	about := resource.NewWithAttributes(spans.SchemaURL, attribute.String(spans.ServiceName, service))
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about)), nil
}

// Watch returns a Watcher that converts the events of runs to spans. It can watch any number of runs at once.
func Watch(p trace.TracerProvider) event.Watcher {
	w := &watcher{tracer: p.Tracer("github.com/stonelayer/stone", trace.WithSchemaURL(spans.SchemaURL))}
	w.maker = spans.New(w)
	return w
}

type watcher struct {
	tracer trace.Tracer

	mu    sync.Mutex
	maker *spans.Maker
	ctx   context.Context // context of the run whose event is being handled
}

// Wants implements event.Watcher: pieces of text do not become spans.
func (w *watcher) Wants(_ context.Context, level slog.Level) bool { return level > event.LevelDelta }

// Watch implements event.Watcher.
func (w *watcher) Watch(ctx context.Context, e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	w.maker.Add(e)
	w.ctx = nil
}

// Start implements spans.Emitter. Root spans are children of the span around the run.
func (w *watcher) Start(up spans.Span, name string, client bool, at time.Time, _ event.Event) spans.Span {
	ctx, kind := w.ctx, trace.SpanKindInternal
	if up, ok := up.(span); ok {
		ctx = trace.ContextWithSpan(ctx, up.Span)
	}
	if client {
		kind = trace.SpanKindClient
	}
	_, s := w.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithSpanKind(kind))
	return span{s}
}

// A span forwards calls of package spans to the SDK.
type span struct{ trace.Span }

// Set implements spans.Span.
func (s span) Set(attrs []slog.Attr) { s.SetAttributes(keyValues(attrs)...) }

// Happened implements spans.Span.
func (s span) Happened(name string, at time.Time, attrs []slog.Attr) {
	s.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(keyValues(attrs)...))
}

// End implements spans.Span.
func (s span) End(at time.Time, kind, reason string) {
	if kind != "" {
		s.SetStatus(codes.Error, reason)
	}
	s.Span.End(trace.WithTimestamp(at))
}

func keyValues(attrs []slog.Attr) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		all = append(all, keyValue(a.Key, a.Value))
	}
	return all
}

func keyValue(key string, v slog.Value) attribute.KeyValue {
	switch v.Kind() {
	case slog.KindString:
		return attribute.String(key, v.String())
	case slog.KindBool:
		return attribute.Bool(key, v.Bool())
	case slog.KindInt64:
		return attribute.Int64(key, v.Int64())
	case slog.KindFloat64:
		return attribute.Float64(key, v.Float64())
	}
	if list, ok := v.Any().([]string); ok {
		return attribute.StringSlice(key, list)
	}
	raw, err := json.Marshal(v.Any())
	if err != nil {
		return attribute.String(key, err.Error())
	}
	return attribute.String(key, string(raw))
}
