package otlp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/trace"
	"pgregory.net/rapid"
)

// In every order of events, each span is emitted once, ends after its start, and has a
// parent that is emitted too.
func TestSpansAreWhole(t *testing.T) {
	types := []string{"cache-hit", "failure", "tool-dispatch", "call-attempt"}
	for begin, end := range openers {
		types = append(types, begin, end)
	}
	slices.Sort(types)
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		n := rapid.IntRange(0, 60).Draw(t, "events")
		opened := 0
		for i := range n {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			span := rapid.IntRange(0, 5).Draw(t, "span")
			fmt.Fprintf(&file, `{"data":{"event":%q,"timestamp":%d,"trace-id":"r%d","span-id":"s%d","parent-span-id":"s%d","turn-number":%d,"ok":%t,"n":%d}}`+"\n",
				typ, 1760000000000+rapid.IntRange(0, 50).Draw(t, "ms"), rapid.IntRange(0, 1).Draw(t, "run"), span, span/2,
				rapid.IntRange(1, 2).Draw(t, "turn"), rapid.Bool().Draw(t, "ok"), i)
			if openers[typ] != "" {
				opened++
			}
		}
		ids, parents := map[string]bool{}, map[string]bool{}
		s := spans{runs: map[string]*run{}, emit: func(sp *span) error {
			if ids[sp.SpanID] {
				t.Errorf("span %s twice", sp.Name)
			}
			if sp.End < sp.Start || sp.Start <= 0 || sp.Name == "" {
				t.Errorf("%+v", sp)
			}
			ids[sp.SpanID] = true
			if sp.Parent != "" {
				parents[sp.Parent] = true
			}
			return nil
		}}
		for e, err := range trace.Read(strings.NewReader(file.String())) {
			if err != nil {
				t.Fatal(err)
			}
			if err := s.add(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.finish(); err != nil {
			t.Fatal(err)
		}
		for id := range parents {
			if !ids[id] {
				t.Errorf("parent %s is missing", id)
			}
		}
		for id, r := range s.runs {
			if len(r.open) > 0 {
				t.Errorf("run %s holds %d spans", id, len(r.open))
			}
		}
	})
}

func TestEventsOfASpanAreBounded(t *testing.T) {
	var got *span
	s := spans{runs: map[string]*run{}, emit: func(sp *span) error { got = sp; return nil }}
	add := func(typ string) {
		if err := s.add(trace.Event{Data: map[string]any{"event": typ, "trace-id": "r", "span-id": "s", "note": strings.Repeat("é", maxText)}}); err != nil {
			t.Fatal(err)
		}
	}
	add("run-start")
	for range maxEvents + 7 {
		add("note")
	}
	add("run-end")
	if len(got.Events) != maxEvents || got.Dropped != 7 || len(*got.Events[0].Attrs[0].Value.String) != maxText+len("…") {
		t.Errorf("%d events, %d dropped", len(got.Events), got.Dropped)
	}
}
