package llm

import (
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
)

// A Report sends the events of one model request to a run's watchers: the request, restarts, and the answer with its duration.
// Through a voice, it also sends the text as it arrives. A nil Report sends nothing.
type Report struct {
	at    event.Place
	voice *event.Voice
	turn  int
	model string
	start time.Time
}

// NewReport sends a ModelRequest and returns a Report. The voice receives the model's text, and may be nil. The turn is the number
// of the agent's turn, or 0 outside agents. NewReport returns nil if voice is nil and no watcher wants the events.
func NewReport(at event.Place, voice *event.Voice, m Model, req *Request, turn int) *Report {
	if voice == nil && !at.Wants(slog.LevelInfo) && !at.Wants(slog.LevelWarn) {
		return nil
	}
	r := &Report{at: at, voice: voice, turn: turn, model: Name(m, req), start: time.Now()}
	var about Info
	if informer, ok := m.(Informer); ok {
		about = informer.Info()
	}
	server := ""
	if u, err := url.Parse(about.Endpoint); err == nil {
		server = u.Host
	}
	at.Send(event.ModelRequest{
		Turn: turn, Model: r.model, MessageCount: len(req.Messages), Provider: about.Provider, Server: server, Stream: server != "",
		System: req.System, Messages: stubs(req.Messages), Tools: req.Tools,
	})
	return r
}

// Name returns req.Model or, if that is empty, the name in the Info of m. It returns "" if neither is known.
func Name(m Model, req *Request) string {
	if informer, ok := m.(Informer); ok && req.Model == "" {
		return informer.Info().Model
	}
	return req.Model
}

// Hear processes the next delta of the answer.
func (r *Report) Hear(d *Delta) {
	if r == nil {
		return
	}
	switch d.Kind {
	case Text:
		r.voice.Say(event.Text, d.Text)
	case Reasoning:
		r.voice.Say(event.Thinking, d.Text)
	case Refusal:
		r.voice.Say(event.Refusal, d.Text)
	case ToolCallStart:
		if d.Call != nil {
			r.voice.Argue(d.Index, d.Call.Name, "")
		}
	case ToolInput:
		r.voice.Argue(d.Index, "", d.Text)
	case Progress:
		r.at.Send(event.Progress{Turn: r.turn, Elapsed: d.Elapsed, Message: d.Text})
	case Restart:
		e := event.ModelRestarted{Turn: r.turn, Wait: d.Wait}
		reason := "the model is asked again"
		if d.Err != nil {
			e.Error = d.Err.Error()
			reason = e.Error
		}
		r.voice.Again(reason)
		r.at.Send(e)
	case Done:
		r.voice.End()
	}
}

// End sends the ModelResponse for the end of the request. The reply may be nil.
func (r *Report) End(reply *Reply, used budget.Usage, err error) {
	if r != nil {
		r.at.Send(event.ModelResponse{Turn: r.turn, Model: r.model, OK: err == nil, Elapsed: time.Since(r.start), Usage: used, Reply: reply.told()})
	}
}

// Recall sends a ModelResponse for a reply that comes from the run's record.
func Recall(at event.Place, m Model, req *Request, turn int, reply *Reply, used budget.Usage) {
	if at.Wants(slog.LevelInfo) {
		at.Send(event.ModelResponse{Turn: turn, Model: Name(m, req), OK: true, Replayed: true, Usage: used, Reply: reply.told()})
	}
}

// stubs returns the messages with each media item replaced by a one-line placeholder, because events contain no media bytes.
func stubs(messages []Message) []Message {
	for i := range messages {
		if messages[i].Media() != nil {
			messages = slices.Clone(messages)
			for j := i; j < len(messages); j++ {
				messages[j].Content = withStubs(messages[j].Content)
			}
			break
		}
	}
	return messages
}

func withStubs(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		if m := parts[i].Media; m != nil {
			parts[i] = Part{Text: m.stub()}
		}
	}
	return parts
}

func (r *Reply) told() *event.ModelReply {
	if r == nil {
		return nil
	}
	text := r.Text
	for _, m := range r.Media {
		text += m.stub()
	}
	return &event.ModelReply{
		StopReason: r.StopReason, ID: r.ID, Model: r.Model, Reasoned: r.Usage.ReasoningTokens, Text: text, Reasoning: r.Reasoning, Refusal: r.Refusal,
		ToolCallCount: len(r.ToolCalls), ToolCalls: r.ToolCalls,
	}
}
