package call

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
)

type traceKey struct{}

// traceOf returns the trace of the request that ctx belongs to, or else a trace with the id of the run.
func traceOf(ctx context.Context) Trace {
	if t, ok := ctx.Value(traceKey{}).(Trace); ok {
		return t
	}
	return Trace{ID: stone.In(ctx).RunID()}
}

// note adds an attempt to the lane's record and sends an event about it to watchers.
func (l *lane) note(a Attempt, o *outcome) {
	a.MustFailed, a.ShouldFailed, a.Judge = names(o.verdict.must), names(o.verdict.should), o.verdict.judge
	a.Verdicts = bounded(l.ctx, o.verdict.all)
	if o.out != nil {
		score := o.verdict.score
		a.Score = &score
	}
	if o.failure != nil {
		a.Failure, a.Error = o.failure.Type, o.failure.Message
	}
	a.Findings = o.fixed
	if o.failure != nil && a.Findings == nil {
		a.Findings = o.failure.Findings()
	}
	a.Findings = a.Findings[:min(len(a.Findings), mostFindings)]
	l.tried = append(l.tried, a)
	if at := event.At(l.ctx); at.Wants(slog.LevelInfo) {
		at.Send(event.CallAttempt{
			Call: l.name, Cap: a.Cap, Attempt: a.Number, Repair: a.Repair,
			Latency: a.Usage.latency(), Usage: a.Usage.Usage, Score: a.Score, Failure: a.Failure,
		})
	}
}

func (u *Usage) latency() time.Duration { return time.Duration(u.LatencyMS) * time.Millisecond }

// counters returns the Applicator's Counters, or nil for a tool, so that tools are not counted.
func (s *session) counters() *Counters {
	if s.spec.Tool != "" {
		return nil
	}
	return s.app.Counters
}

// tell counts a finished call and sends an event with its verdict to watchers.
func (s *session) tell(r *Record) {
	s.counters().Count(r)
	if at := event.At(s.ctx); at.Wants(slog.LevelInfo) {
		at.Send(event.CallVerdict{
			Call: s.name, Intent: r.Intent, Cap: r.Cap, Attempts: r.Attempts,
			Latency: r.Usage.latency(), Usage: r.Usage.Usage, Score: r.Score, Failure: r.Failure,
		})
	}
}

// checked sends watchers an event that says whether a returned plan can run.
func (l *lane) checked(step string, err error) {
	at := event.At(l.ctx)
	if !at.Wants(slog.LevelInfo) {
		return
	}
	checked := event.PlanChecked{Plan: step}
	if err != nil {
		checked.Findings = []string{err.Error()}
		if invalid := (*stone.Invalid)(nil); errors.As(err, &invalid) {
			checked.Findings = nil
			for _, f := range invalid.Findings.Errors() {
				checked.Findings = append(checked.Findings, f.String())
			}
		}
	}
	at.Send(checked)
}
