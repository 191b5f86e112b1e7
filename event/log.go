package event

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/budget"
)

// Log returns a Watcher that passes events to a slog.Handler as records: the
// message is the type of the event, the attributes begin with trace-id, span-id
// and parent-span-id, and request-id in a run that answers a request. Package trace writes them to files.
//
// Contents of requests, responses and tool calls are records of their own at level
// debug, named after the event with "-payload". Deltas, retractions, starts of
// tools and replayed responses are left out.
//
// An error of the handler is dropped: handlers report their own errors.
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
	d, ok := e.Data.(interface{ attrs(Event) []slog.Attr })
	if !ok {
		return
	}
	if r, ok := e.Data.(ModelResponse); ok && r.Replayed {
		return
	}
	l.record(ctx, e, e.Level(), e.Type(), d.attrs(e))
	if p, ok := e.Data.(interface{ payload(Event) []slog.Attr }); ok && l.handler.Enabled(ctx, slog.LevelDebug) {
		if attrs := p.payload(e); attrs != nil {
			l.record(ctx, e, slog.LevelDebug, e.Type()+"-payload", attrs)
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

// The methods attrs and payload of a type of data return its log attributes.

func (e Event) named(more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{slog.String("ashlar-name", e.Name)}, more...)
}

func (e Event) placed(more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{slog.String("ashlar-name", e.Name), slog.String("path", e.Path)}, more...)
}

// turned is named, with the number of the turn of an agent: from 1, and none for a call outside of agents.
func (e Event) turned(turn int, more ...slog.Attr) []slog.Attr {
	if turn == 0 {
		return e.named(more...)
	}
	return append(e.named(slog.Int("turn-number", turn)), more...)
}

func elapsed(d time.Duration) slog.Attr {
	return slog.Duration("elapsed", d.Round(time.Microsecond))
}

func (d RunStarted) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("fingerprint", d.Fingerprint))
}

func (d RunEnded) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("fingerprint", d.Fingerprint), elapsed(d.Elapsed), slog.Bool("ok", d.OK))
}

func (d StepStarted) attrs(e Event) []slog.Attr { return e.placed(slog.String("form", d.Form)) }

func (d StepDone) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("form", d.Form), elapsed(d.Elapsed), slog.Bool("ok", d.OK))
}

func (d StepReplayed) attrs(e Event) []slog.Attr { return e.placed(slog.String("step", d.Kind)) }

func (d StepFailed) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("kind", d.Kind), slog.String("reason", d.Reason))
}

func (d AttemptFailed) attrs(e Event) []slog.Attr {
	return e.placed(slog.Int("attempt", d.Attempt), slog.String("kind", d.Kind), slog.String("reason", d.Reason))
}

func (d LaneStarted) attrs(e Event) []slog.Attr {
	attrs := e.placed(slog.Int("lane", d.Lane), slog.Int("lanes", d.Lanes))
	if d.Label != "" {
		attrs = append(attrs, slog.String("label", d.Label))
	}
	return attrs
}

func (d LaneEnded) attrs(e Event) []slog.Attr {
	return e.placed(slog.Int("lane", d.Lane), slog.Int("lanes", d.Lanes), elapsed(d.Elapsed), slog.Bool("ok", d.OK))
}

func (d QuestionAsked) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("question", d.Question), slog.String("reason", d.Problem))
}

func (d QuestionAnswered) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("answer", d.Answer), slog.String("by", d.By))
}

func (AgentStarted) attrs(e Event) []slog.Attr { return e.named() }

func (d AgentEnded) attrs(e Event) []slog.Attr {
	attrs := e.named(slog.Bool("ok", d.OK), slog.Int("turns", d.Turns), elapsed(d.Elapsed))
	return append(attrs, used(d.Usage)...)
}

// used returns the attributes of a usage, without zero ones.
func used(u budget.Usage) (attrs []slog.Attr) {
	if u.InputTokens > 0 {
		attrs = append(attrs, slog.Int("input-tokens", u.InputTokens))
	}
	if u.OutputTokens > 0 {
		attrs = append(attrs, slog.Int("output-tokens", u.OutputTokens))
	}
	if u.USD > 0 {
		attrs = append(attrs, slog.Float64("usd", u.USD))
	}
	if u.Estimated {
		attrs = append(attrs, slog.Bool("estimated", true))
	}
	return attrs
}

func (e Event) asked(turn int, model string, more ...slog.Attr) []slog.Attr {
	return append(e.turned(turn, slog.String("model", model)), more...)
}

func (d ModelRequest) attrs(e Event) []slog.Attr {
	return e.asked(d.Turn, d.Model, slog.Int("message-count", d.MessageCount))
}

func (d ModelRequest) payload(e Event) []slog.Attr {
	return e.asked(d.Turn, d.Model, slog.String("system", d.System), slog.Any("messages", d.Messages), slog.Any("tools", d.Tools))
}

func (d ModelResponse) attrs(e Event) []slog.Attr {
	attrs := e.asked(d.Turn, d.Model, slog.Bool("ok", d.OK), elapsed(d.Elapsed))
	attrs = append(attrs, used(d.Usage)...)
	if r := d.Reply; r != nil {
		attrs = append(attrs, slog.String("stop-reason", r.StopReason), slog.Int("tool-call-count", r.ToolCallCount))
	}
	return attrs
}

func (d ModelResponse) payload(e Event) []slog.Attr {
	r := d.Reply
	if r == nil {
		return nil
	}
	return e.asked(d.Turn, d.Model, slog.String("text", r.Text), slog.String("reasoning", r.Reasoning),
		slog.String("refusal", r.Refusal), slog.Any("tool-calls", r.ToolCalls))
}

func (d ModelRestarted) attrs(e Event) []slog.Attr {
	attrs := e.turned(d.Turn)
	if d.Error != "" {
		attrs = append(attrs, slog.String("error", d.Error))
	}
	return append(attrs, slog.Duration("wait", d.Wait))
}

func (d Progress) attrs(e Event) []slog.Attr {
	attrs := e.turned(d.Turn, slog.Duration("elapsed", d.Elapsed))
	if d.Message != "" {
		attrs = append(attrs, slog.String("message", d.Message))
	}
	if d.Done > 0 {
		attrs = append(attrs, slog.Float64("done", d.Done))
	}
	if d.Total > 0 {
		attrs = append(attrs, slog.Float64("total", d.Total))
	}
	return attrs
}

func (d MiddlewareRan) attrs(e Event) []slog.Attr {
	return e.turned(d.Turn, slog.String("middleware", d.Middleware), slog.Bool("active", d.Active))
}

func (d ToolDone) attrs(e Event) []slog.Attr {
	return e.placed(slog.Int("turn-number", d.Turn), slog.Int("position", d.Position),
		slog.String("tool-name", d.Tool), slog.Bool("ok", d.OK), elapsed(d.Elapsed))
}

func (d ToolDone) payload(e Event) []slog.Attr {
	meta := d.Meta
	if meta == nil {
		meta = json.RawMessage("{}")
	}
	return append(d.attrs(e), slog.Any("input", d.Input), slog.String("result-text", d.Text), slog.Any("result-meta", meta))
}

func (d ToolPanicked) attrs(e Event) []slog.Attr {
	return e.named(slog.String("tool-name", d.Tool), slog.String("error", d.Error), slog.String("stack", d.Stack))
}

func (d CallAttempt) attrs(e Event) []slog.Attr {
	attrs := e.placed(slog.String("call", d.Call), slog.String("cap", d.Cap), slog.Int("attempt", d.Attempt))
	attrs = append(attrs, cost(d.Usage, d.Latency)...)
	if d.Repair {
		attrs = append(attrs, slog.Bool("repair", true))
	}
	return append(attrs, verdict(d.Score, d.Failure)...)
}

func (d CallVerdict) attrs(e Event) []slog.Attr {
	attrs := e.placed(slog.String("call", d.Call), slog.String("intent", d.Intent), slog.String("cap", d.Cap), slog.Int("attempts", d.Attempts))
	attrs = append(attrs, cost(d.Usage, d.Latency)...)
	return append(attrs, verdict(d.Score, d.Failure)...)
}

func cost(u budget.Usage, latency time.Duration) []slog.Attr {
	return append([]slog.Attr{slog.Int64("latency-ms", latency.Milliseconds())}, used(u)...)
}

// verdict returns the attributes for the result of an attempt or a call.
func verdict(score *float64, failure string) (attrs []slog.Attr) {
	if score != nil {
		attrs = append(attrs, slog.Float64("score", *score))
	}
	if failure != "" {
		attrs = append(attrs, slog.String("failure", failure))
	}
	return attrs
}

func (d PlanChecked) attrs(e Event) []slog.Attr {
	attrs := e.placed(slog.String("plan", d.Plan))
	if len(d.Findings) > 0 {
		attrs = append(attrs, slog.Any("findings", d.Findings))
	}
	return attrs
}

func (d Notice) attrs(e Event) []slog.Attr {
	return e.placed(slog.String("code", d.Code), slog.String("text", d.Text))
}

func (d Custom) attrs(Event) []slog.Attr { return d.Attrs }
