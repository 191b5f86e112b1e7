package call

import (
	"context"
	"log/slog"

	"github.com/stonelayer/stone"
)

type listenKey struct{}

// Listen returns a context in which calls tell what capabilities answer while they
// do: pieces of text, with the id of the capability. Several may answer at once,
// and what is told need not be accepted in the end. The function is called from
// several goroutines at once.
func Listen(ctx context.Context, to func(cap, text string)) context.Context {
	return context.WithValue(ctx, listenKey{}, to)
}

// listening returns what takes the pieces of one capability, or nil.
func listening(ctx context.Context, cap string) func(string) {
	to, _ := ctx.Value(listenKey{}).(func(cap, text string))
	if to == nil {
		return nil
	}
	return func(text string) { to(cap, text) }
}

type traceKey struct{}

// traceOf returns the trace of the request to which ctx belongs, or that of the
// run.
func traceOf(ctx context.Context) Trace {
	if t, ok := ctx.Value(traceKey{}).(Trace); ok {
		return t
	}
	return Trace{ID: stone.TraceID(ctx)}
}

// note adds an attempt to the record of its lane, and tells whoever listens.
func (l *lane) note(a Attempt, o *outcome) {
	a.MustFailed, a.ShouldFailed, a.Judge = names(o.verdict.must), names(o.verdict.should), o.verdict.judge
	if o.out != nil {
		score := o.verdict.score
		a.Score = &score
	}
	if o.failure != nil {
		a.Failure, a.Error = o.failure.Type, o.failure.Message
	}
	l.tried = append(l.tried, a)
	if !stone.Enabled(l.ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.String("call", l.name), slog.String("cap", a.Cap), slog.Int("attempt", a.Number),
		slog.Int64("latency-ms", a.Usage.LatencyMS),
		slog.Int("input-tokens", a.Usage.InputTokens), slog.Int("output-tokens", a.Usage.OutputTokens),
		slog.Float64("usd", a.Usage.USD),
	}
	if a.Repair {
		attrs = append(attrs, slog.Bool("repair", true))
	}
	stone.Event(l.ctx, slog.LevelInfo, "call-attempt", append(attrs, verdictAttrs(a.Score, a.Failure)...)...)
}

// verdictAttrs tell how an attempt or a call ended.
func verdictAttrs(score *float64, failure string) (attrs []slog.Attr) {
	if score != nil {
		attrs = append(attrs, slog.Float64("score", *score))
	}
	if failure != "" {
		attrs = append(attrs, slog.String("failure", failure))
	}
	return attrs
}

// counters are nil, which counts nothing, for a tool.
func (s *session) counters() *Counters {
	if s.spec.Tool != "" {
		return nil
	}
	return s.app.Counters
}

// tell counts a call that has ended, and tells whoever listens.
func (s *session) tell(r *Record) {
	s.counters().Count(r)
	if !stone.Enabled(s.ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.String("call", s.name), slog.String("intent", r.Intent), slog.String("cap", r.Cap),
		slog.Int("attempts", r.Attempts), slog.Int64("latency-ms", r.Usage.LatencyMS),
		slog.Int("input-tokens", r.Usage.InputTokens), slog.Int("output-tokens", r.Usage.OutputTokens),
		slog.Float64("usd", r.Usage.USD),
	}
	stone.Event(s.ctx, slog.LevelInfo, "call-verdict", append(attrs, verdictAttrs(r.Score, r.Failure)...)...)
}
