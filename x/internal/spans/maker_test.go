package spans

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/event"
)

// A log keeps the spans that it has started.
type log struct{ spans []*logged }

type logged struct {
	up         *logged
	name       string
	start, end time.Time
	ends       int
}

func (l *log) Start(up Span, name string, _ bool, at time.Time, _ event.Event) Span {
	sp := &logged{name: name, start: at}
	sp.up, _ = up.(*logged)
	l.spans = append(l.spans, sp)
	return sp
}

func (l *logged) SetName(name string)                     { l.name = name }
func (l *logged) Set([]slog.Attr)                         {}
func (l *logged) Happened(string, time.Time, []slog.Attr) {}
func (l *logged) End(at time.Time, _, _ string)           { l.end, l.ends = at, l.ends+1 }

// In every order of events, each span has a name and one end, not before its start and not before its
// parent started.
func TestSpansAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out log
		m := New(&out)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			span, turn, ok := rapid.IntRange(0, 5).Draw(t, "span"), rapid.IntRange(1, 2).Draw(t, "turn"), rapid.Bool().Draw(t, "ok")
			call := event.ToolCall{Turn: turn, Tool: "look"}
			data := rapid.SampledFrom([]event.Data{event.RunStarted{}, event.RunEnded{OK: ok}, event.StepStarted{}, event.StepDone{OK: ok}, event.LaneStarted{}, event.LaneEnded{OK: ok},
				event.AgentStarted{}, event.AgentEnded{OK: ok}, event.ModelRequest{Turn: turn}, event.ModelResponse{Turn: turn, OK: ok}, event.ToolStarted{ToolCall: call},
				event.ToolDone{ToolCall: call, OK: ok, Elapsed: time.Millisecond}, event.CallAttempt{Latency: time.Millisecond}, event.CallAttempt{Failure: "x: y"},
				event.StepFailed{Kind: "x"}, event.Progress{Turn: turn}, event.Custom{Name: "cache-hit"}}).Draw(t, "data")
			m.Add(event.Event{Run: strconv.Itoa(rapid.IntRange(0, 1).Draw(t, "run")), Span: strconv.Itoa(span), Parent: strconv.Itoa(span / 2), Name: "n",
				Time: time.UnixMilli(1760000000000 + rapid.Int64Range(0, 50).Draw(t, "ms")), Data: data})
		}
		for id, r := range m.runs {
			if len(r.open) == 0 {
				t.Errorf("run %s is kept without an open span", id)
			}
		}
		m.Finish()
		if len(m.runs) > 0 {
			t.Errorf("%d runs are kept", len(m.runs))
		}
		for _, sp := range out.spans {
			if sp.ends != 1 || sp.end.Before(sp.start) || sp.name == "" {
				t.Errorf("%+v", sp)
			}
		}
	})
}
