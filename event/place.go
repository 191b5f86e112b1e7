package event

import (
	"context"
	"log/slog"
)

// A Place is a part of a run, such as a step, an attempt or a lane, that can send events. The zero Place is outside any run and
// drops all events. A Place may be used by several goroutines at once, even after its step is done.
type Place struct{ sender Sender }

// A Sender sends the events of a Place. Package stone implements it.
type Sender interface {
	// Wants reports whether events of the level are wanted.
	Wants(level slog.Level) bool
	// Send sends an event from this place if its level is wanted. Deltas are dropped if the place was retracted.
	Send(Data)
	// Retract voids all answers that were streamed at this place and below. If there were any, it sends a Retracted event. Later
	// deltas are dropped.
	Retract(reason string)
}

// Key is the type of the context key under which a context holds the Sender of its place.
type Key struct{}

// At returns the place of the run to which ctx belongs, or the zero Place outside a run.
func At(ctx context.Context) Place {
	s, _ := ctx.Value(Key{}).(Sender)
	return Place{s}
}

// Wants reports whether the run's watcher wants events of the given level. Call it before computing expensive data.
func (p Place) Wants(level slog.Level) bool { return p.sender != nil && p.sender.Wants(level) }

// Send sends an event if its level is wanted.
func (p Place) Send(d Data) {
	if p.sender != nil {
		p.sender.Send(d)
	}
}

// Retract voids all answers that were streamed at this place and below. Later deltas there are dropped.
func (p Place) Retract(reason string) {
	if p.sender != nil {
		p.sender.Retract(reason)
	}
}

// A Voice streams the pieces of one answer. A nil Voice sends nothing. A Voice is not
// safe for concurrent use.
type Voice struct {
	place   Place
	source  string
	attempt int
	said    bool // whether a piece of this attempt was sent
	ended   bool
}

// Speak returns a Voice that streams an answer at the place. Source is the name of the model, or the id of the capability, that
// answers. If no watcher wants deltas, Speak returns nil.
func (p Place) Speak(source string) *Voice {
	if !p.Wants(LevelDelta) {
		return nil
	}
	return &Voice{place: p, source: source, attempt: 1}
}

// Say sends the next piece of the answer, which must not be empty.
func (v *Voice) Say(kind DeltaKind, text string) { v.send(Delta{Kind: kind, Text: text}) }

// Argue sends the next piece of a tool call's arguments. The first piece of
// each call names the tool, and may have no text.
func (v *Voice) Argue(call int, tool, text string) {
	v.send(Delta{Kind: Arguments, Index: call, Tool: tool, Text: text})
}

// End declares the answer complete. Further calls do nothing.
func (v *Voice) End() {
	if v != nil && v.said && !v.ended {
		v.send(Delta{End: true})
		v.ended = true
	}
}

// Said reports whether the voice has sent a piece that Again has not retracted. For a nil Voice, it returns false.
func (v *Voice) Said() bool { return v != nil && v.said }

// Again retracts all pieces sent so far. Later pieces belong to a new attempt.
func (v *Voice) Again(reason string) {
	if v == nil {
		return
	}
	if v.said {
		v.place.Send(Retracted{v.source, v.attempt, reason})
	}
	v.attempt++
	v.said, v.ended = false, false
}

func (v *Voice) send(d Delta) {
	if v == nil {
		return
	}
	v.said = true
	d.Source, d.Attempt = v.source, v.attempt
	v.place.Send(d)
}
