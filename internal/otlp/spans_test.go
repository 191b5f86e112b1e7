package otlp

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/spans"
)

func TestEventsOfASpanAreBounded(t *testing.T) {
	var got *span
	m := spans.New(emitter{emit: func(sp *span) { got = sp }})
	add := func(d event.Data) { m.Add(event.Event{Run: "r", Span: "s", Data: d}) }
	add(event.RunStarted{})
	for range maxEvents + 7 {
		add(event.Custom{Name: "note", Attrs: []slog.Attr{slog.String("note", strings.Repeat("é", maxText))}})
	}
	add(event.RunEnded{OK: true})
	if len(got.Events) != maxEvents || got.Dropped != 7 || len(*got.Events[0].Attrs[0].Value.String) != maxText+len("…") {
		t.Errorf("%d events, %d dropped", len(got.Events), got.Dropped)
	}
}
