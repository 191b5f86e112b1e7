package otel_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/otel"
	"github.com/stonelayer/stone/x/otlp"
)

// TestAgrees checks that events have the same spans, live and from their trace file: names, kinds,
// parents, attributes, states and events.
func TestAgrees(t *testing.T) {
	scripts := map[string][]event.Event{"a run": recorded(t, pipeline()), "a failed run": recorded(t, failing())}
	for name, data := range parts() {
		scripts[name] = whole(data)
	}
	for name, events := range scripts {
		t.Run(name, func(t *testing.T) {
			rec := tracetest.NewSpanRecorder()
			var file bytes.Buffer
			w := event.All(otel.Watch(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))), event.NewWriter(&file, slog.LevelDebug))
			for _, e := range events {
				if w.Wants(t.Context(), e.Level()) {
					w.Watch(t.Context(), e)
				}
			}
			live, filed := liveSpans(rec.Ended()), filedSpans(t, &file)
			if len(live) == 0 {
				t.Error("no spans")
			}
			for _, s := range live {
				if i := slices.Index(filed, s); i < 0 {
					t.Errorf("only live:\n%s", s)
				} else {
					filed = slices.Delete(filed, i, i+1)
				}
			}
			for _, s := range filed {
				t.Errorf("only from the file:\n%s", s)
			}
		})
	}
}

func recorded(t *testing.T, p stone.Ashlar) []event.Event {
	var r eventtest.Recorder
	_, _ = stone.Run(t.Context(), p, stone.Config{Watch: &r})
	return r.Events()
}

// failing is a pipeline with a step that fails twice and then succeeds, an agent that fails, and
// with it the run.
func failing() stone.Ashlar {
	tries := 0
	return stone.Seq("all",
		stone.Func0("flaky", word, func(context.Context) (string, error) {
			if tries++; tries < 3 {
				return "", stone.Fail("busy", "try again")
			}
			return "x", nil
		}, stone.Retry{Attempts: 3}),
		stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("reply"), func(struct{}) string { return "Well?" }),
		agent.New("talk", note, script.New(script.Text("never seen")), agent.Config{User: agent.Say("q")}))
}

// parts returns data of events within one step of a run.
func parts() map[string][]event.Data {
	half, use := .5, budget.Usage{InputTokens: 3, OutputTokens: 4, USD: .25, Estimated: true}
	ask := event.ModelRequest{Turn: 1, Model: "m", MessageCount: 2, System: "SECRET"}
	reply := &event.ModelReply{StopReason: "stop", ToolCallCount: 1}
	call := event.ToolCall{Turn: 1, Position: 1, Tool: "look"}
	return map[string][]event.Data{
		"progress and restarts": {event.AgentStarted{}, ask, event.Progress{Turn: 1, Elapsed: time.Second},
			event.ModelRestarted{Turn: 1, Error: "cut short", Wait: 1500 * time.Millisecond}, event.Progress{Turn: 1, Elapsed: 2 * time.Second, Message: "half", Done: 1, Total: 2},
			event.ModelResponse{Turn: 1, Model: "m", OK: true, Elapsed: time.Second, Usage: use, Reply: reply},
			event.AgentEnded{OK: true, Turns: 1, Usage: use}},
		"an answer that fails": {ask, event.ModelRestarted{Error: "cut short"}, event.ModelResponse{Turn: 1, Model: "m", Elapsed: time.Second}},
		"an agent that fails": {event.AgentStarted{}, ask, event.ModelResponse{Turn: 1, Model: "m", OK: true, Reply: reply},
			event.AgentEnded{Turns: 1}, event.StepFailed{Kind: "max-turns", Reason: "one turn"}},
		"a replayed answer": {event.AgentStarted{}, event.ModelResponse{Turn: 1, Model: "m", OK: true, Replayed: true, Reply: reply}, event.AgentEnded{OK: true, Turns: 1}},
		"outside an agent":  {event.ModelRequest{Model: "m", MessageCount: 1}, event.Progress{Elapsed: time.Second}, event.ModelResponse{Model: "m", OK: true}},
		"tools": {event.AgentStarted{}, event.MiddlewareRan{Turn: 1, Middleware: "look", Active: true}, event.ToolStarted{ToolCall: call},
			event.ToolPanicked{Tool: "look", Error: "oops", Stack: "main"}, event.ToolDone{ToolCall: call, Elapsed: time.Second, Text: "SECRET"},
			event.ToolDone{ToolCall: event.ToolCall{Turn: 1, Position: 2, Tool: "refused"}}, event.AgentEnded{OK: true}},
		"attempts and verdicts": {
			event.CallAttempt{Call: "c", Cap: "small", Attempt: 1, Latency: 1500 * time.Microsecond, Usage: use, Score: &half, Failure: "gate-failed: below 0.9"},
			event.CallAttempt{Call: "c", Cap: "small", Attempt: 2, Repair: true, Latency: time.Second},
			event.CallVerdict{Call: "c", Intent: "i", Cap: "small", Attempts: 2, Latency: time.Second, Usage: use, Score: &half}},
		"a verdict that fails": {event.CallVerdict{Call: "c", Intent: "i", Attempts: 2, Failure: "no-candidate-left"}},
		"plans and questions": {event.PlanChecked{Plan: "p", Findings: []string{"one", "two"}}, event.PlanChecked{Plan: "q"},
			event.QuestionAsked{Question: "Well?", Problem: "no answer"}, event.QuestionAnswered{Answer: "yes", By: "me"}},
		"attempts of a step": {event.AttemptFailed{Attempt: 1, Kind: "busy", Reason: "one"}, event.AttemptFailed{Attempt: 2, Kind: "timeout", Reason: "two"}},
		"two failures":       {event.AttemptFailed{Attempt: 1, Kind: "busy", Reason: "one"}, event.StepFailed{Kind: "timeout", Reason: "two"}},
		"a lane that is lost": {event.LaneStarted{Lane: 1, Lanes: 2, Label: "b"}, event.StepFailed{Kind: "busy", Reason: "one"},
			event.LaneEnded{Lane: 1, Lanes: 2, Elapsed: time.Second, Lost: true}},
		"replays and notices": {event.StepReplayed{Kind: "leaf"}, event.Notice{Code: "prompt-changed", Path: "all/elsewhere", Text: "a\nb"}},
		"custom": {event.Custom{Name: "own", At: slog.LevelInfo + 1, Attrs: []slog.Attr{slog.Duration("wait", 1500*time.Millisecond), slog.Any("list", []string{"a"}),
			slog.Any("numbers", []int{1, 2}), slog.Group("group", slog.Int("n", 1)), slog.Time("at", time.Unix(1, 0).UTC()), slog.Any("error", errors.New("oops")),
			slog.String("empty", ""), slog.Any("nothing", nil), slog.Float64("whole", 2), slog.Uint64("many", 1<<63)}}},
		"unfinished": {event.AgentStarted{}, ask, event.ToolStarted{ToolCall: call}},
	}
}

// whole returns the events of a run with a step in which the data happen. Lanes are visits of
// their own. If one of the data is a failure, the step fails, and with it the run.
func whole(data []event.Data) []event.Event {
	ok := true
	for _, d := range data {
		switch d := d.(type) {
		case event.StepFailed:
			ok = false
		case event.CallVerdict:
			ok = ok && d.Failure == ""
		case event.AgentEnded:
			ok = ok && d.OK
		}
	}
	events := []event.Event{{Span: "s1", Name: "all", Path: "all", Data: event.RunStarted{Fingerprint: "f"}},
		{Span: "s1", Name: "all", Path: "all", Data: event.StepStarted{Form: "seq"}},
		{Span: "s2", Parent: "s1", Name: "step", Path: "all/step", Data: event.StepStarted{Form: "leaf"}}}
	for _, d := range data {
		e := event.Event{Span: "s2", Parent: "s1", Name: "step", Path: "all/step", Data: d}
		switch d.(type) {
		case event.LaneStarted, event.LaneEnded:
			e = event.Event{Span: "s3", Parent: "s2", Name: "step", Path: "all/step[1]", Data: d}
		}
		events = append(events, e)
	}
	events = append(events, event.Event{Span: "s2", Parent: "s1", Name: "step", Path: "all/step", Data: event.StepDone{Form: "leaf", OK: ok, Replayed: len(data) == 2, Usage: budget.Usage{InputTokens: 1}}},
		event.Event{Span: "s1", Name: "all", Path: "all", Data: event.StepDone{Form: "seq", OK: ok}},
		event.Event{Span: "s1", Name: "all", Path: "all", Data: event.RunEnded{OK: ok, Fingerprint: "f", Elapsed: time.Second}})
	for i := range events {
		events[i].Run, events[i].Request, events[i].Seq, events[i].Time = "r", "q", uint64(i+1), time.Unix(1760000000, int64(i)*1e6)
	}
	return events
}

func liveSpans(spans []sdk.ReadOnlySpan) (all []string) {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	for _, s := range spans {
		var events []string
		for _, e := range s.Events() {
			events = append(events, e.Name+" "+printed(e.Attributes))
		}
		all = append(all, fmt.Sprintf("%s in %q, kind %d, status %q\n\t%s\n\t%s", s.Name(), names[s.Parent().SpanID().String()],
			s.SpanKind(), s.Status().Description, printed(s.Attributes()), strings.Join(events, "\n\t")))
	}
	return all
}

// printed prints attributes by their names.
func printed(attrs []attribute.KeyValue) string {
	var all []string
	for _, a := range attrs {
		all = append(all, string(a.Key)+"="+a.Value.Emit())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func filedSpans(t *testing.T, file io.Reader) (all []string) {
	var spans []filedSpan
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		var request struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []filedSpan } }
		}
		if err := json.NewDecoder(z).Decode(&request); err != nil {
			t.Error(err)
			return
		}
		spans = append(spans, request.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	defer server.Close()
	if _, err := otlp.Export(t.Context(), file, otlp.Config{URL: server.URL, JSON: true}); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanID] = s.Name
	}
	for _, s := range spans {
		var events []string
		for _, e := range s.Events {
			events = append(events, e.Name+" "+printed(e.keyValues()))
		}
		all = append(all, fmt.Sprintf("%s in %q, kind %d, status %q\n\t%s\n\t%s", s.Name, names[s.ParentSpanID],
			s.Kind, s.Status.Message, printed(s.keyValues()), strings.Join(events, "\n\t")))
	}
	return all
}

type filedSpan struct {
	SpanID, ParentSpanID string
	Kind                 int
	Status               struct{ Message string }
	filedEvent
	Events []filedEvent
}

type filedEvent struct {
	Name       string
	Attributes []struct {
		Key   string
		Value struct {
			StringValue *string
			BoolValue   *bool
			IntValue    *string
			DoubleValue *float64
			ArrayValue  *struct {
				Values []struct{ StringValue string }
			}
		}
	}
}

func (e filedEvent) keyValues() (attrs []attribute.KeyValue) {
	for _, a := range e.Attributes {
		v := a.Value
		switch {
		case v.StringValue != nil:
			attrs = append(attrs, attribute.String(a.Key, *v.StringValue))
		case v.BoolValue != nil:
			attrs = append(attrs, attribute.Bool(a.Key, *v.BoolValue))
		case v.IntValue != nil:
			attrs = append(attrs, attribute.String(a.Key, *v.IntValue))
		case v.DoubleValue != nil:
			attrs = append(attrs, attribute.Float64(a.Key, *v.DoubleValue))
		case v.ArrayValue != nil:
			var list []string
			for _, s := range v.ArrayValue.Values {
				list = append(list, s.StringValue)
			}
			attrs = append(attrs, attribute.StringSlice(a.Key, list))
		}
	}
	return attrs
}
