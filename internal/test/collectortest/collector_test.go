package collectortest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/otlp"
)

// collected are the spans that the collector's receiver got.
type collected struct {
	mu     sync.Mutex
	all    []ptrace.Span
	spans  map[string]ptrace.Span // by name; the last one counts
	ids    map[pcommon.SpanID]string
	total  int
	schema string
	refuse error // the answer to the next request
}

func (c *collected) take(_ context.Context, td ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse; err != nil {
		c.refuse = nil
		return err
	}
	for _, rs := range td.ResourceSpans().All() {
		c.schema = rs.SchemaUrl()
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				c.total++
				c.all = append(c.all, sp)
				c.spans[sp.Name()] = sp
				c.ids[sp.SpanID()] = sp.Name()
			}
		}
	}
	return nil
}

// start runs a collector's receiver and returns its URL.
func start(t *testing.T) (*collected, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()

	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	settings := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": addr}}})
	if err := settings.Unmarshal(cfg); err != nil {
		t.Fatal(err)
	}
	c := &collected{spans: map[string]ptrace.Span{}, ids: map[pcommon.SpanID]string{}}
	sink, err := consumer.NewTraces(c.take)
	if err != nil {
		t.Fatal(err)
	}
	r, err := factory.CreateTraces(t.Context(), receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, "http://" + addr
}

var (
	text  = dag.NewType[agent.Text]("text")
	file  = dag.NewType[agent.Text]("file")
	items = dag.NewType[[]string]("items")
	item  = dag.NewType[string]("item")
	loud  = dag.NewType[string]("loud")
)

type input struct {
	Path string `json:"path"`
}

// pipeline has a fan-out in which one lane fails, and an agent with a tool.
func pipeline() stone.Ashlar {
	model := script.New(
		script.Call("read_file", `{"path":"a.go"}`),
		script.Text("all is well"),
	)
	read := tool.Func("read_file", "Reads a file.", func(context.Context, input) (string, error) { return "package a", nil })
	return stone.Seq("p",
		stone.Func0("list", items, func(context.Context) ([]string, error) { return []string{"a", "b"}, nil }),
		stone.Map("each", items, item,
			stone.Func("upper", item, loud, func(_ context.Context, s string) (string, error) {
				if s == "b" {
					return "", stone.Fail("no-b", "b is not wanted")
				}
				return strings.ToUpper(s), nil
			})),
		stone.Reduce(stone.Func("join", dag.All(loud), file, func(_ context.Context, all []string) (agent.Text, error) {
			return agent.Text{Text: strings.Join(all, " ")}, nil
		})),
		agent.New("fix", text, model, agent.Config{
			User: agent.Prompt(file, func(agent.Text) string { return "Look." }),
			Use:  []agent.Middleware{read},
		}),
	)
}

func TestCollector(t *testing.T) {
	var out strings.Builder
	if _, err := stone.Run(t.Context(), pipeline(), stone.Config{RunID: "run-7", Watch: event.NewWriter(&out, slog.LevelDebug)}); err != nil {
		t.Fatal(err)
	}
	c, url := start(t)
	report, err := otlp.Export(t.Context(), strings.NewReader(out.String()), otlp.Config{URL: url})
	if err != nil || report.Sent != c.total {
		t.Fatalf("%+v, %v; the collector has %d spans\n%s", report, err, c.total, &out)
	}
	if c.schema != semconv.SchemaURL {
		t.Errorf("schema %s, want %s", c.schema, semconv.SchemaURL)
	}

	for _, want := range []struct{ name, parent, attrs string }{
		{"invoke_workflow p", "", "gen_ai.operation.name=invoke_workflow gen_ai.workflow.name=p stone.run=run-7"},
		{"list", "invoke_workflow p", "stone.path=p/list"},
		{"each", "invoke_workflow p", "stone.form=map"},
		{"upper", "lane each", ""},
		{"join", "invoke_workflow p", ""},
		{"invoke_agent fix", "invoke_workflow p", "gen_ai.agent.name=fix stone.turns=2"},
		{"execute_tool read_file", "invoke_agent fix", "gen_ai.tool.name=read_file gen_ai.operation.name=execute_tool"},
	} {
		sp, ok := c.spans[want.name]
		if !ok {
			t.Errorf("no span %q among %v", want.name, c.ids)
			continue
		}
		if parent := c.ids[sp.ParentSpanID()]; parent != want.parent {
			t.Errorf("%s hangs below %q, want %q", want.name, parent, want.parent)
		}
		for pair := range strings.FieldsSeq(want.attrs) {
			key, value, _ := strings.Cut(pair, "=")
			if got, _ := sp.Attributes().Get(key); got.AsString() != value {
				t.Errorf("%s: %s is %q, want %q", want.name, key, got.AsString(), value)
			}
		}
		if sp.TraceID().IsEmpty() || time.Since(sp.StartTimestamp().AsTime()) > time.Minute || sp.EndTimestamp() < sp.StartTimestamp() {
			t.Errorf("%s: trace %s, %s to %s", want.name, sp.TraceID(), sp.StartTimestamp(), sp.EndTimestamp())
		}
	}
	chats, failed := 0, 0
	for _, sp := range c.all {
		if strings.HasPrefix(sp.Name(), "chat") {
			chats++
			if reasons, ok := sp.Attributes().Get("gen_ai.response.finish_reasons"); !ok || reasons.Type() != pcommon.ValueTypeSlice || sp.Kind() != ptrace.SpanKindClient {
				t.Errorf("%s: %v, finish reasons %v", sp.Name(), sp.Kind(), reasons.AsString())
			}
		}
		if kind, ok := sp.Attributes().Get("error.type"); ok && sp.Status().Code() == ptrace.StatusCodeError && kind.Str() == "no-b" {
			failed++
		}
	}
	if chats != 2 || failed != 2 { // one chat a turn; the leaf and its lane
		t.Errorf("%d chats, %d failed spans of kind no-b: %v", chats, failed, c.ids)
	}
}

// Refused requests, and how often they are repeated.
func TestCollectorRefuses(t *testing.T) {
	const one = `{"event":"cache-hit","custom":true,"level":"info","timestamp":1760000000000,"trace-id":"r","data":{}}`
	c, url := start(t)
	c.refuse = fmt.Errorf("the queue is full")
	report, err := otlp.Export(t.Context(), strings.NewReader(one), otlp.Config{URL: url})
	if err != nil || report.Sent != 1 || c.total != 1 {
		t.Errorf("busy once: %+v, %v", report, err)
	}
	c.refuse = consumererror.NewPermanent(fmt.Errorf("not these"))
	_, err = otlp.Export(t.Context(), strings.NewReader(one), otlp.Config{URL: url})
	if err == nil || !strings.Contains(err.Error(), "not these") {
		t.Errorf("refused for good: %v", err)
	}
}

// A collector gets the spans of a run from an exporter that is live, also what it refused at first.
func TestLive(t *testing.T) {
	c, url := start(t)
	c.refuse = fmt.Errorf("the queue is full")
	live, err := otlp.NewLive(otlp.Config{URL: url}, func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stone.Run(t.Context(), pipeline(), stone.Config{RunID: "run-8", Watch: live}); err != nil {
		t.Fatal(err)
	}
	for received := false; !received; time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		_, received = c.spans["invoke_workflow p"]
		c.mu.Unlock()
	}
	live.Close()
	for _, want := range []string{"invoke_workflow p", "invoke_agent fix", "execute_tool read_file", "lane each", "join"} {
		if _, ok := c.spans[want]; !ok {
			t.Errorf("no span %q among %v", want, c.ids)
		}
	}
}
