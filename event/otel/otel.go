package otel

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stonelayer/stone/budget"
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
	outer  context.Context // that of stone.Run
	spans  map[string]*span
}

type span struct {
	trace.Span
	ctx    context.Context
	failed bool
	root   bool // of a run: it keeps its name
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
	case event.RunEnded:
		r.end(e, e.Span, d.OK)
	case event.StepStarted:
		if r.spans[e.Span] == nil { // the first ashlar belongs to the run
			r.start(e, e.Span, e.Parent, e.Name, e.Time)
		}
		r.spans[e.Span].SetAttributes(text("stone.path", e.Path), text("stone.form", d.Form))
	case event.StepDone:
		r.done(e, d)
	case event.LaneStarted:
		s := r.start(e, e.Span, e.Parent, "lane "+e.Name, e.Time)
		s.SetAttributes(text("stone.path", e.Path), attribute.Int("stone.lane", d.Lane))
	case event.LaneEnded:
		r.at(e).SetAttributes(attribute.Bool("stone.lost", d.Lost))
		r.end(e, e.Span, d.OK)
	case event.StepFailed:
		s := r.at(e)
		s.fail(d.Kind, d.Reason)
		s.AddEvent(e.Type(), trace.WithTimestamp(e.Time), trace.WithAttributes(text("stone.kind", d.Kind), text("stone.reason", d.Reason)))
	case event.AgentStarted:
		if s := r.at(e); !s.root {
			s.SetName(operation(otlp.InvokeAgent, e.Name))
			s.SetAttributes(text(otlp.OperationName, otlp.InvokeAgent), text(otlp.AgentName, e.Name))
		}
	case event.AgentEnded:
		r.at(e).SetAttributes(append(usage(d.Usage), attribute.Int("stone.turns", d.Turns))...)
	case event.ModelRequest:
		s := r.start(e, "model "+e.Path, e.Span, operation(otlp.Chat, d.Model), e.Time, trace.WithSpanKind(trace.SpanKindClient))
		s.SetAttributes(text(otlp.OperationName, otlp.Chat), text(otlp.RequestModel, d.Model), attribute.Int("stone.turn_number", d.Turn))
	case event.ModelResponse:
		r.answered(e, d)
	case event.ToolStarted:
		r.tool(e, d.ToolCall, e.Time)
	case event.ToolDone:
		s := r.spans[toolKey(e, d.ToolCall)]
		if s == nil { // the call was refused
			s = r.tool(e, d.ToolCall, e.Time)
		}
		r.end(e, toolKey(e, d.ToolCall), d.OK)
	case event.CallAttempt:
		key := "attempt " + e.Path + d.Cap
		s := r.start(e, key, e.Span, "call-attempt "+d.Cap, e.Time.Add(-d.Latency))
		s.SetAttributes(append(usage(d.Usage), text("stone.cap", d.Cap), attribute.Int("stone.attempt", d.Attempt))...)
		if d.Failure != "" {
			s.fail(d.Failure, "")
		}
		r.end(e, key, d.Failure == "")
	default:
		r.at(e).AddEvent(e.Type(), trace.WithTimestamp(e.Time), trace.WithAttributes(attributes(e.Data)...))
	}
}

// start opens a span below another one, or below the span around the run.
func (r *run) start(e event.Event, key, parent, name string, at time.Time, opts ...trace.SpanStartOption) *span {
	ctx := r.outer
	if up := r.spans[parent]; up != nil {
		ctx = up.ctx
	}
	s := new(span)
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
		s.fail("_OTHER", "") // the conventions' value for other errors
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
	s.SetAttributes(usage(d.Usage)...)
	if d.Reply != nil {
		if d.Reply.StopReason != "" {
			s.SetAttributes(attribute.StringSlice(otlp.FinishReasons, []string{d.Reply.StopReason}))
		}
	}
	r.end(e, key, d.OK)
}

func toolKey(e event.Event, c event.ToolCall) string {
	return fmt.Sprintf("tool %s %d %d", e.Path, c.Turn, c.Position)
}

func (r *run) tool(e event.Event, c event.ToolCall, at time.Time) *span {
	s := r.start(e, toolKey(e, c), e.Span, operation(otlp.ExecuteTool, c.Tool), at)
	s.SetAttributes(text(otlp.OperationName, otlp.ExecuteTool), text(otlp.ToolName, c.Tool), text(otlp.ToolType, "function"))
	return s
}

// fail marks a span as failed. The first failure counts.
func (s *span) fail(kind, reason string) {
	if !s.failed {
		s.failed = true
		s.SetStatus(codes.Error, reason)
		s.SetAttributes(text(otlp.ErrorType, kind))
	}
}

func operation(name, of string) string { return strings.TrimSpace(name + " " + of) }

func text(key, value string) attribute.KeyValue { return attribute.String(key, value) }

func usage(u budget.Usage) (attrs []attribute.KeyValue) {
	if u.InputTokens > 0 {
		attrs = append(attrs, attribute.Int(otlp.InputTokens, u.InputTokens))
	}
	if u.OutputTokens > 0 {
		attrs = append(attrs, attribute.Int(otlp.OutputTokens, u.OutputTokens))
	}
	if u.USD > 0 {
		attrs = append(attrs, attribute.Float64("stone.usd", u.USD))
	}
	return attrs
}

// attributes returns the attributes of events that have no span.
func attributes(d event.Data) []attribute.KeyValue {
	switch d := d.(type) {
	case event.AttemptFailed:
		return []attribute.KeyValue{attribute.Int("stone.attempt", d.Attempt), text("stone.kind", d.Kind), text("stone.reason", d.Reason)}
	case event.StepReplayed:
		return []attribute.KeyValue{text("stone.step", d.Kind)}
	case event.QuestionAsked:
		return []attribute.KeyValue{text("stone.question", d.Question), text("stone.reason", d.Problem)}
	case event.QuestionAnswered:
		return []attribute.KeyValue{text("stone.answer", d.Answer), text("stone.answer.by", d.By)}
	case event.ModelRestarted:
		return []attribute.KeyValue{text("stone.error", d.Error), text("stone.wait", d.Wait.String())}
	case event.Progress:
		return []attribute.KeyValue{text("stone.elapsed", d.Elapsed.String()), text("stone.message", d.Message)}
	case event.MiddlewareRan:
		return []attribute.KeyValue{text("stone.middleware", d.Middleware), attribute.Bool("stone.active", d.Active)}
	case event.ToolPanicked:
		return []attribute.KeyValue{text(otlp.ToolName, d.Tool), text("stone.error", d.Error), text("stone.stack", d.Stack)}
	case event.CallVerdict:
		return append(usage(d.Usage), text("stone.cap", d.Cap), text("stone.intent", d.Intent), text("stone.failure", d.Failure))
	case event.PlanChecked:
		return []attribute.KeyValue{text("stone.plan", d.Plan), attribute.StringSlice("stone.findings", d.Findings)}
	case event.Custom:
		var attrs []attribute.KeyValue
		for _, a := range d.Attrs {
			attrs = append(attrs, text("stone."+strings.ReplaceAll(a.Key, "-", "_"), a.Value.Resolve().String()))
		}
		return attrs
	}
	return nil
}
