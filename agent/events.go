package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/event"
)

// events sends an agent's events to the stream of its run.
type events struct {
	place       event.Place // the agent's place, not a step's
	info, debug bool
}

func eventsOf(ctx context.Context) events {
	at := event.At(ctx)
	return events{place: at, info: at.Wants(slog.LevelInfo), debug: at.Wants(slog.LevelDebug)}
}

// started sends AgentStarted and returns a function that sends AgentEnded, or nil if there is no watcher.
func (r *run) started() func(error) {
	if !r.info {
		return nil
	}
	start := time.Now()
	r.place.Send(event.AgentStarted{})
	return func(err error) {
		r.place.Send(event.AgentEnded{OK: err == nil, Turns: r.turn, Elapsed: time.Since(start), Usage: r.usage})
	}
}

// told returns the call in the form that events use.
func (j *job) told() event.ToolCall {
	c := event.ToolCall{Turn: j.turn, Position: j.position, Tool: j.call.Name, ID: j.call.ID, Input: j.call.Input}
	if j.call.Input == nil {
		text, _ := json.Marshal(j.call.InputText) // A string can always be encoded.
		c.Input = json.RawMessage(text)
	}
	return c
}

func (j *job) dispatched(o outcome) {
	if !j.info {
		return
	}
	done := event.ToolDone{ToolCall: j.told(), OK: !o.Failed, Elapsed: time.Since(j.start), Text: o.Text}
	for _, m := range o.Media {
		done.Text += "\n[" + m.String() + "]"
	}
	if o.Meta != nil {
		done.Meta = o.Meta
	}
	j.place.Send(done)
}
