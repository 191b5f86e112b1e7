package otlp

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/internal/spans"
)

// The texts of models and tools are sent only if that is chosen.
func TestMessages(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/agent.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"gen_ai.system_instructions": `[{"type":"text","content":"Be brief."}]`,
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"Hello"}]},` +
			`{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"at":1}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"{\"a\":1}"}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"Hi"},` +
			`{"type":"tool_call","id":"c2","name":"look","arguments":{"at":2}}],"finish_reason":"stop"}]`,
		"gen_ai.tool.definitions":    `[{"name":"look"}]`,
		"gen_ai.tool.call.arguments": `{"at":2}`,
		"gen_ai.tool.call.result":    `a wall`,
	}
	for _, chosen := range []bool{false, true} {
		c := &collector{}
		if _, err := Export(t.Context(), bytes.NewReader(archive.Files[0].Data), Config{URL: "http://c", Client: c.client(), Messages: chosen}); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, sp := range c.spans {
			for _, a := range sp.Attrs {
				if _, text := want[a.Key]; text {
					got[a.Key] = *a.Value.String
				}
			}
		}
		if !chosen && len(got) > 0 || chosen && !maps.Equal(got, want) {
			t.Errorf("chosen %t: %q", chosen, got)
		}
	}
}

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
