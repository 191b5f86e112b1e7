package otel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/otel"
)

var (
	note = dag.NewType[agent.Text]("note")
	word = dag.NewType[string]("word")

	number = dag.NewType[int]("number")
)

type look struct {
	Path string `json:"path"`
}

func pipeline() stone.Ashlar {
	m := script.New(script.Call("look", `{"path":"SECRET-x"}`), script.Text("SECRET-answer"))
	t := tool.Func("look", "looks", func(context.Context, look) (string, error) { return "SECRET-y", nil })
	work := stone.Func0("work", word, func(ctx context.Context) (string, error) {
		if strings.Contains(stone.In(ctx).Path(), "[1]") {
			return "x", nil
		}
		stone.In(ctx).Event(slog.LevelInfo, "own", slog.Int("n-th", 7))
		return "", errors.New("boom")
	})
	return stone.Seq("all",
		agent.New("talk", note, m, agent.Config{User: agent.Say("SECRET-q"), Use: []agent.Middleware{t}}),
		stone.Func0("start", number, func(context.Context) (int, error) { return 2, nil }),
		stone.Map("both", dag.Derive(number, func(n int) []int { return make([]int, n) }), number, work),
		stone.Reduce(stone.Func0("last", word, func(context.Context) (string, error) { return "y", nil })))
}

// TestSpans checks the tree of spans, their names and errors, that a run is below the
// span around it, and that no content is exported.
func TestSpans(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))
	ctx, outer := provider.Tracer("test").Start(t.Context(), "outer")
	if _, err := stone.Run(ctx, pipeline(), stone.Config{Watch: otel.Watch(provider)}); err != nil {
		t.Fatal(err)
	}
	outer.End()
	names := map[string]string{"0000000000000000": ""}
	for _, s := range rec.Ended() {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	var got []string
	for _, s := range rec.Ended() {
		line := names[s.Parent().SpanID().String()] + " > " + s.Name()
		if s.Status().Code == codes.Error {
			line += " failed " + attr(s.Attributes(), "error.type")
		}
		for _, e := range s.Events() {
			line += " [" + e.Name + " " + attr(e.Attributes, "stone.n_th") + "]"
		}
		got = append(got, strings.ReplaceAll(line, " ]", "]"))
		if s.EndTime().Before(s.StartTime()) || s.SpanContext().TraceID() != outer.SpanContext().TraceID() {
			t.Errorf("%s: from %v to %v in %v", s.Name(), s.StartTime(), s.EndTime(), s.SpanContext().TraceID())
		}
		if text := fmt.Sprint(s.Attributes(), s.Events()); strings.Contains(text, "SECRET") {
			t.Errorf("a content in %s: %s", s.Name(), text)
		}
	}
	slices.Sort(got)
	want := []string{
		" > outer", "both > lane both", "both > lane both failed error",
		"invoke_agent talk > chat script", "invoke_agent talk > chat script", "invoke_agent talk > execute_tool look",
		"invoke_workflow all > both", "invoke_workflow all > invoke_agent talk", "invoke_workflow all > last", "invoke_workflow all > start",
		"lane both > work", "lane both > work failed error [own 7] [failure]", "outer > invoke_workflow all",
	}
	for i, line := range got { // middlewares are events of the agent
		got[i] = strings.ReplaceAll(line, " [middleware-run]", "")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func attr(attrs []attribute.KeyValue, key string) string {
	for _, a := range attrs {
		if string(a.Key) == key {
			return a.Value.Emit()
		}
	}
	return ""
}

// TestEverything checks that each type of data is accepted, in any state.
func TestEverything(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	w := otel.Watch(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec)))
	for range 2 {
		for i, d := range eventtest.All() {
			w.Watch(t.Context(), event.Event{Run: "r", Seq: uint64(i + 1), Span: fmt.Sprint(i), Data: d})
		}
	}
	if started, ended := len(rec.Started()), len(rec.Ended()); started == 0 || started != ended {
		t.Errorf("%d spans started, %d ended", started, ended)
	}
}

// TestProvider checks that spans reach a collector.
func TestProvider(t *testing.T) {
	bodies := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { bodies <- r.Method + " " + r.URL.Path }))
	defer server.Close()
	provider, err := otel.NewProvider(t.Context(), "svc", otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stone.Run(t.Context(), pipeline(), stone.Config{Watch: otel.Watch(provider)}); err != nil {
		t.Fatal(err)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-bodies; got != "POST /v1/traces" {
		t.Errorf("the collector got %s", got)
	}
}
