package otel

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/trace/otlp"
)

// NewProvider returns a provider that sends spans to a collector over OTLP/HTTP in
// batches. The environment variables of OpenTelemetry and the options configure it. Its
// Shutdown sends the queued spans.
func NewProvider(ctx context.Context, service string, opts ...otlptracehttp.Option) (*sdk.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	about := resource.NewWithAttributes(otlp.SchemaURL, attribute.String(otlp.ServiceName, service))
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about)), nil
}

// Watch returns a Watcher that makes spans of the events of runs. It may watch any number
// of runs at once.
func Watch(p trace.TracerProvider) event.Watcher {
	return &watcher{
		tracer: p.Tracer("github.com/stonelayer/stone", trace.WithSchemaURL(otlp.SchemaURL)),
		runs:   map[string]*run{},
	}
}

type watcher struct {
	tracer trace.Tracer

	mu   sync.Mutex
	runs map[string]*run
}

// A run holds the open spans of a run.
type run struct {
	tracer trace.Tracer
	outer  context.Context // of stone.Run
	spans  map[string]*span
}

type span struct {
	trace.Span
	ctx   context.Context
	up    *span // nil at the root
	root  bool  // of a run: it keeps its name
	genAI bool  // its attributes have conventional names

	kind, reason string // of its last failure
}

// Wants implements event.Watcher: pieces of text make no spans.
func (w *watcher) Wants(_ context.Context, level slog.Level) bool { return level > event.LevelDelta }

// Watch implements event.Watcher.
func (w *watcher) Watch(ctx context.Context, e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[e.Run]
	if r == nil {
		r = &run{tracer: w.tracer, outer: ctx, spans: map[string]*span{}}
		w.runs[e.Run] = r
	}
	r.take(e)
	if _, over := e.Data.(event.RunEnded); over {
		for _, s := range r.spans { // an abandoned body may still work
			s.fail("unfinished", "")
			s.End(trace.WithTimestamp(e.Time))
		}
		delete(w.runs, e.Run)
	}
}

func (r *run) take(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		s := r.start(e, e.Span, "", operation(otlp.InvokeWorkflow, e.Name), e.Time)
		s.root = true
		s.SetAttributes(text(otlp.OperationName, otlp.InvokeWorkflow), text(otlp.WorkflowName, e.Name), text("stone.run", e.Run))
		s.describe(e)
	case event.RunEnded:
		r.end(e, e.Span, d.OK)
	case event.StepStarted:
		if r.spans[e.Span] == nil { // the first ashlar belongs to the run
			r.start(e, e.Span, e.Parent, e.Name, e.Time)
		}
		r.at(e).describe(e)
	case event.StepDone:
		r.done(e, d)
	case event.LaneStarted:
		r.start(e, e.Span, e.Parent, "lane "+e.Name, e.Time).describe(e)
	case event.LaneEnded:
		r.at(e).SetAttributes(attribute.Bool("stone.lost", d.Lost))
		r.end(e, e.Span, d.OK)
	case event.AgentStarted:
		s := r.at(e)
		s.genAI = true
		if !s.root {
			s.SetName(operation(otlp.InvokeAgent, e.Name))
			s.SetAttributes(text(otlp.OperationName, otlp.InvokeAgent))
		}
		s.describe(e)
	case event.AgentEnded:
		r.at(e).describe(e, "elapsed", "ok")
	case event.ModelRequest:
		s := r.start(e, "model "+e.Path, e.Span, operation(otlp.Chat, d.Model), e.Time, trace.WithSpanKind(trace.SpanKindClient))
		s.genAI = true
		s.SetAttributes(text(otlp.OperationName, otlp.Chat))
		s.describe(e)
	case event.ModelResponse:
		r.answered(e, d)
	case event.ToolStarted:
		r.tool(e, d.ToolCall, e.Time)
	case event.ToolDone:
		s := r.spans[toolKey(e, d.ToolCall)]
		if s == nil { // the call was refused
			s = r.tool(e, d.ToolCall, e.Time)
		}
		s.describe(e, "elapsed", "ok")
		r.end(e, toolKey(e, d.ToolCall), d.OK)
	case event.CallAttempt:
		key := "attempt " + e.Path + d.Cap
		s := r.start(e, key, e.Span, "call-attempt "+d.Cap, e.Time.Add(-d.Latency))
		s.genAI = true
		s.describe(e, "latency-ms")
		s.because(d.Failure)
		r.end(e, key, d.Failure == "")
	default:
		r.happened(e)
	}
}

// happened adds an event to its span and keeps the failure that the event reports.
func (r *run) happened(e event.Event) {
	s := r.at(e)
	switch d := e.Data.(type) {
	case event.StepFailed:
		s.kind, s.reason = d.Kind, d.Reason
	case event.AttemptFailed:
		s.kind, s.reason = d.Kind, d.Reason
	case event.CallVerdict:
		s.because(d.Failure)
	case event.ModelRestarted, event.Progress:
		if turn := r.spans["model "+e.Path]; turn != nil {
			s = turn
		}
	}
	s.AddEvent(e.Type(), trace.WithTimestamp(e.Time), trace.WithAttributes(attributes(e, false)...))
}

// start opens a span below another one, or below the span around the run.
func (r *run) start(e event.Event, key, parent, name string, at time.Time, opts ...trace.SpanStartOption) *span {
	ctx := r.outer
	s := &span{up: r.spans[parent]}
	if s.up != nil {
		ctx = s.up.ctx
	}
	s.ctx, s.Span = r.tracer.Start(ctx, name, append(opts, trace.WithTimestamp(at))...)
	r.spans[key] = s
	return s
}

func (r *run) end(e event.Event, key string, ok bool) {
	s := r.spans[key]
	if s == nil {
		return
	}
	if !ok {
		if s.kind != "" && s.up != nil { // the span around it may fail for the same reason
			s.up.kind, s.up.reason = s.kind, s.reason
		}
		s.fail(cmp.Or(s.kind, "_OTHER"), s.reason) // the conventions' value for other errors
	}
	s.End(trace.WithTimestamp(e.Time))
	delete(r.spans, key)
}

// at returns the span of an event, or one that records nothing.
func (r *run) at(e event.Event) *span {
	if s := r.spans[e.Span]; s != nil {
		return s
	}
	return &span{Span: trace.SpanFromContext(context.Background())}
}

func (r *run) done(e event.Event, d event.StepDone) {
	s := r.at(e)
	if d.Replayed {
		s.SetAttributes(attribute.Bool("stone.replayed", true))
	}
	if !s.root {
		r.end(e, e.Span, d.OK)
	}
}

func (r *run) answered(e event.Event, d event.ModelResponse) {
	key := "model " + e.Path
	s := r.spans[key]
	if s == nil {
		return // it belongs to an earlier run
	}
	s.describe(e, "elapsed", "ok")
	r.end(e, key, d.OK)
}

func toolKey(e event.Event, c event.ToolCall) string {
	return fmt.Sprintf("tool %s %d %d", e.Path, c.Turn, c.Position)
}

func (r *run) tool(e event.Event, c event.ToolCall, at time.Time) *span {
	s := r.start(e, toolKey(e, c), e.Span, operation(otlp.ExecuteTool, c.Tool), at)
	s.SetAttributes(text(otlp.OperationName, otlp.ExecuteTool), text(otlp.ToolType, "function"))
	s.genAI = true
	return s
}

// because keeps a failure, which is a kind or "kind: reason".
func (s *span) because(failure string) {
	if failure != "" {
		s.kind, s.reason, _ = strings.Cut(failure, ": ")
	}
}

// fail marks a span as failed.
func (s *span) fail(kind, reason string) {
	s.SetStatus(codes.Error, reason)
	s.SetAttributes(text(otlp.ErrorType, kind))
}

func operation(name, of string) string { return strings.TrimSpace(name + " " + of) }

func text(key, value string) attribute.KeyValue { return attribute.String(key, value) }

// describe sets the fields that a trace file has for the event as attributes, except the fields in without.
func (s *span) describe(e event.Event, without ...string) {
	s.SetAttributes(attributes(e, s.genAI, without...)...)
}

// attributes returns the fields of the event's log record under the names of otlp.Attribute, so that a
// run has the same attributes live and from its trace file.
func attributes(e event.Event, genAI bool, without ...string) []attribute.KeyValue {
	var f fields
	event.Log(&f).Watch(context.Background(), e)
	var attrs []attribute.KeyValue
	for _, a := range f.attrs {
		if !slices.Contains(without, a.Key) && !slices.Contains(places, a.Key) {
			attrs = append(attrs, keyValue(otlp.Attribute(a.Key, genAI), a.Value.Resolve())...)
		}
	}
	return attrs
}

// places are the fields that identify the span of an event.
var places = []string{"trace-id", "span-id", "parent-span-id"}

func keyValue(key string, v slog.Value) []attribute.KeyValue {
	kv := text(key, v.String())
	switch v.Kind() {
	case slog.KindBool:
		kv = attribute.Bool(key, v.Bool())
	case slog.KindInt64:
		kv = attribute.Int64(key, v.Int64())
	case slog.KindFloat64:
		kv = attribute.Float64(key, v.Float64())
	case slog.KindDuration: // in milliseconds
		kv = attribute.Float64(key, float64(v.Duration())/float64(time.Millisecond))
	case slog.KindAny:
		if list, ok := v.Any().([]string); ok {
			kv = attribute.StringSlice(key, list)
		}
	default:
		if v.String() == "" {
			return nil
		}
	}
	if key == otlp.FinishReasons {
		kv = attribute.StringSlice(key, []string{v.String()})
	}
	return []attribute.KeyValue{kv}
}

// fields is a slog.Handler that keeps the attributes of a record. It disables payloads, so that contents
// are not exported.
type fields struct{ attrs []slog.Attr }

func (*fields) Enabled(context.Context, slog.Level) bool { return false }
func (f *fields) WithAttrs([]slog.Attr) slog.Handler     { return f }
func (f *fields) WithGroup(string) slog.Handler          { return f }
func (f *fields) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool { f.attrs = append(f.attrs, a); return true })
	return nil
}
