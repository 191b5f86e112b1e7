package stone

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/stonelayer/stone/dag"
)

// Event sends an event of the caller's own to the handler of the run to which
// ctx belongs: name is the event, as "cache-hit", and the correlation fields
// trace-id, span-id and parent-span-id are added. Outside of a run, or when the
// handler does not want the level, it does nothing.
func Event(ctx context.Context, level slog.Level, name string, attrs ...slog.Attr) {
	if f := frameOf(ctx); f != nil && f.logs(level) {
		f.emit(level, name, attrs...)
	}
}

// Enabled reports whether an Event of the level would be seen. Ask it before
// attributes are computed that cost something.
func Enabled(ctx context.Context, level slog.Level) bool {
	f := frameOf(ctx)
	return f != nil && f.logs(level)
}

// TraceID returns the id of the run to which ctx belongs, or "".
func TraceID(ctx context.Context) string {
	if f := frameOf(ctx); f != nil {
		return f.run.id
	}
	return ""
}

// SpanID returns the id of the visit of the ashlar to which ctx belongs, or "".
func SpanID(ctx context.Context) string {
	if f := frameOf(ctx); f != nil {
		return f.spanID()
	}
	return ""
}

// ParentSpanID returns the id of the span around that of SpanID, or "".
func ParentSpanID(ctx context.Context) string {
	if f := frameOf(ctx); f != nil {
		return f.parentSpanID()
	}
	return ""
}

// Path returns the address of the ashlar, the attempt or the Step to which ctx
// belongs, as "review/loop[2]/lane[17]/draft~2", or "". TraceID and Path together
// are the same when a run is resumed, and never the same twice within a run: an
// idempotency key for what a body calls.
func Path(ctx context.Context) string {
	if f := frameOf(ctx); f != nil {
		return f.path()
	}
	return ""
}

func (f *frame) logs(level slog.Level) bool {
	return f.run.log != nil && f.run.log.Enabled(f, level)
}

// spanned returns the frame whose span f is in. Lanes have spans of their own;
// frames that only mark a round, a branch, an attempt or a step have not.
func (f *frame) spanned() *frame {
	for f.up != nil && (f.up.spec == f.spec && f.seg != visitSegment || f.seg == stepSegment) && !f.lane() {
		f = f.up
	}
	return f
}

func (f *frame) lane() bool {
	return f.seg == indexSegment && (f.spec.form == mapForm || f.spec.form == parallelForm)
}

func (f *frame) spanID() string {
	span := &f.spanned().more().span
	n := span.Load()
	for n == 0 {
		span.CompareAndSwap(0, f.run.spans.Add(1))
		n = span.Load()
	}
	return f.run.spanPrefix + strconv.FormatUint(n, 10)
}

func (f *frame) parentSpanID() string {
	if up := f.spanned().up; up != nil {
		return up.spanID()
	}
	return ""
}

func (f *frame) emit(level slog.Level, name string, attrs ...slog.Attr) {
	record := slog.NewRecord(f.run.now(), level, name, 0)
	record.AddAttrs(
		slog.String("trace-id", f.run.id),
		slog.String("span-id", f.spanID()),
		slog.String("parent-span-id", f.parentSpanID()),
	)
	record.AddAttrs(attrs...)
	// A handler that fails must not fail the run; it reports for itself.
	_ = f.run.log.Handle(f, record)
}

// started sends ashlar-start and returns what sends ashlar-end, nil if nobody
// listens.
func (f *frame) started() func(dag.DAG) {
	if !f.logs(slog.LevelDebug) {
		return nil
	}
	return f.bracket("ashlar", slog.LevelDebug, slog.String("form", formNames[f.spec.form]))
}

func (f *frame) laneStarted(lanes int) func(dag.DAG) {
	if !f.logs(slog.LevelDebug) {
		return nil
	}
	return f.bracket("lane", slog.LevelDebug, slog.Int("lane", int(f.index)), slog.Int("lanes", lanes))
}

func (f *frame) runStarted(p Ashlar) func(dag.DAG) {
	if !f.logs(slog.LevelInfo) {
		return nil
	}
	return f.bracket("run", slog.LevelInfo, slog.String("fingerprint", p.Fingerprint().String()))
}

// bracket sends the event what-start and returns what sends what-end.
func (f *frame) bracket(what string, level slog.Level, attrs ...slog.Attr) func(dag.DAG) {
	begun := f.run.now()
	attrs = append([]slog.Attr{slog.String("ashlar-name", f.spec.name), slog.String("path", f.path())}, attrs...)
	f.emit(level, what+"-start", attrs...)
	return func(d dag.DAG) {
		end := append(attrs, slog.Duration("elapsed", f.run.now().Sub(begun).Round(time.Microsecond)), slog.Bool("ok", !d.Failed()))
		f.emit(level, what+"-end", end...)
	}
}

// failed sends the failure event, at level error.
func (f *frame) failed(failure *Failure) {
	if !f.logs(slog.LevelError) {
		return
	}
	f.emit(slog.LevelError, "failure",
		slog.String("ashlar-name", f.spec.name), slog.String("path", failure.Path),
		slog.String("kind", failure.Kind), slog.String("reason", failure.Reason))
}

// triedInVain sends the event of an attempt after which a leaf is tried again.
func (f *frame) triedInVain(attempt int, err error) {
	if !f.logs(slog.LevelWarn) {
		return
	}
	failure := failureOf(err, f.path())
	f.emit(slog.LevelWarn, "attempt-failed",
		slog.String("ashlar-name", f.spec.name), slog.String("path", failure.Path), slog.Int("attempt", attempt),
		slog.String("kind", failure.Kind), slog.String("reason", failure.Reason))
}
