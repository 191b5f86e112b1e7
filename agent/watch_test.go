package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
)

// traced runs a conversation with everything secret in it, and returns its
// events at the level.
func traced(t *testing.T, level slog.Level) (text string, events []map[string]any) {
	t.Helper()
	two := 2
	m := model(but(calls("secret-tool", `{"text":"SECRET-input"}`, "nothing", `{"text":"SECRET-name"}`), func(r *llm.Reply) {
		r.Text, r.Usage = "SECRET-text", llm.Usage{InputTokens: &two, OutputTokens: &two}
	}), says("SECRET-answer"), but(says("good"), func(r *llm.Reply) { r.Usage.InputTokens = &two }))
	secret := tool("secret-tool", func(string) (agent.Result, error) {
		return agent.Result{Text: "SECRET-result", Meta: map[string]any{"k": "SECRET-meta"}}, nil
	})
	votes := 0
	judge := stone.New("judge", check, func(_ context.Context, d dag.DAG) (passed, error) {
		if votes++; votes == 1 {
			return passed{}, stone.Fail("rejected", "again")
		}
		return passed{}, nil
	})
	var b bytes.Buffer
	cfg := stone.Config{Watch: event.Log(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: level}))}
	a := agent.New("talk", note, m, agent.Config{
		System: agent.Say("SECRET-system"), User: agent.Say("SECRET-user"), Use: []agent.Middleware{agent.Use(secret)}, Adversary: judge,
	})
	res, err := run(t, a, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if meta := res.Node.Meta(); meta["turns"] != "3" || meta["input-tokens"] != "4" || meta["output-tokens"] != "2" {
		t.Errorf("meta %v, want the sums of the turns", meta)
	}
	for line := range strings.Lines(b.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return b.String(), events
}

// TestEvents checks the order of events, and that prompts, replies and the inputs and
// results of tools are in events of level debug only.
func TestEvents(t *testing.T) {
	text, events := traced(t, slog.LevelInfo)
	var names []string
	for _, e := range events {
		names = append(names, e["msg"].(string))
	}
	want := "run-start agent-ashlar-start api-call api-response tool-dispatch tool-dispatch api-call api-response failure api-call api-response agent-ashlar-end run-end"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(text, "SECRET") {
		t.Errorf("a secret at level info:\n%s", text)
	}
	text, events = traced(t, slog.LevelDebug)
	for _, part := range []string{"system", "user", "text", "input", "result", "meta", "answer", "name"} {
		if !strings.Contains(text, "SECRET-"+part) {
			t.Errorf("%s is not in the events at level debug", part)
		}
	}
	for _, e := range events {
		if raw, err := json.Marshal(e); err != nil || e["level"] != "DEBUG" && strings.Contains(string(raw), "SECRET") {
			t.Errorf("a secret in an event that is not of level debug: %s (%v)", raw, err)
		}
	}
	events = slices.DeleteFunc(events, func(e map[string]any) bool { return e["msg"] != "tool-dispatch-payload" })
	e := events[0]
	if e["tool-name"] != "secret-tool" || e["ok"] != true || e["turn-number"] != 1.0 || e["result-text"] != "SECRET-result" ||
		fmt.Sprint(e["input"], e["result-meta"]) != "map[text:SECRET-input] map[k:SECRET-meta]" {
		t.Errorf("tool-dispatch %v", e)
	}
	if e := events[1]; e["tool-name"] != "nothing" || e["ok"] != false {
		t.Errorf("tool-dispatch of a tool that does not exist: %v", e)
	}
}

// TestDeltas checks that the answers of a run's agents are streamed, and that a
// replayed turn is one event.
func TestDeltas(t *testing.T) {
	mem := dies(t, -1)
	talk := func() stone.Ashlar {
		first := agent.New("first", note, model(but(calls("echo", `{"text":"x"}`), func(r *llm.Reply) { r.Text = "I echo" }), says("hi")),
			agent.Config{User: agent.Say("a"), Use: []agent.Middleware{agent.Use(echo())}})
		return stone.Seq("both", first, agent.New("second", examples, model(says("yo")), agent.Config{User: agent.Prompt(note, func(agent.Text) string { return "b" })}))
	}
	for _, want := range [][]string{
		{"both/first/turn-1 text I echo", "both/first/turn-1 arguments echo ", `both/first/turn-1 arguments {"text":"x"}`, "both/first/turn-1 end",
			"both/first/turn-2 text hi", "both/first/turn-2 end", "both/second/turn-1 text yo", "both/second/turn-1 end"},
		{}, // leaves are replayed whole
	} {
		var r eventtest.Recorder
		if _, err := stone.Run(t.Context(), talk(), stone.Config{Recorder: mem, RunID: "r", Watch: &r}); err != nil {
			t.Fatal(err)
		}
		if err := eventtest.Check(r.Events()); err != nil {
			t.Error(err)
		}
		if seen := said(r.Events()); !slices.Equal(seen, want) {
			t.Errorf("seen\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
	}
}

// said lists the streamed and the retracted texts.
func said(events []event.Event) []string {
	out := []string{}
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.Delta:
			line := fmt.Sprintf("%s %s %s", e.Path, d.Kind, d.Text)
			if d.Tool != "" {
				line = fmt.Sprintf("%s %s %s %s", e.Path, d.Kind, d.Tool, d.Text)
			}
			if d.End {
				line = e.Path + " end"
			}
			out = append(out, line)
		case event.Retracted:
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s retracted %s", e.Path, d.Reason)))
		}
	}
	return out
}

// TestRetractions checks that invalid text is retracted before any other text: after a
// restart, an answer that does not fit, a rejection, and a step that fails or is
// retried.
func TestRetractions(t *testing.T) {
	judged := 0
	judge := stone.New("judge", check, func(context.Context, dag.DAG) (passed, error) {
		if judged++; judged == 1 {
			return passed{}, stone.Fail("rejected", "too short")
		}
		return passed{}, nil
	})
	text := func(s string) llm.Delta { return llm.Delta{Kind: llm.Text, Text: s} }
	restart := llm.Delta{Kind: llm.Restart, Err: errors.New("cut")}
	done := func(s string) llm.Delta { return llm.Delta{Kind: llm.Done, Reply: says(s)} }
	for name, c := range map[string]struct {
		model llm.Model
		cfg   agent.Config
		fails bool
		want  []string
	}{
		"restart": {model([]llm.Delta{text("ha"), restart, text("hello"), done("hello")}), agent.Config{}, false,
			[]string{"talk/turn-1 text ha", "talk/turn-1 retracted cut", "talk/turn-1 text hello", "talk/turn-1 end"}},
		"judge": {model(says("a"), says("b")), agent.Config{Adversary: judge}, false,
			[]string{"talk/turn-1 text a", "talk/turn-1 end", "talk/turn-1 retracted too short", "talk/turn-2 text b", "talk/turn-2 end"}},
		"failure": {model([]llm.Delta{text("ha")}), agent.Config{}, true,
			[]string{"talk/turn-1 text ha", "talk retracted the model's stream ended before its answer was complete"}},
		"retry": {model([]llm.Delta{text("ha")}, says("whole")), agent.Config{Options: []stone.LeafOption{stone.Retry{Attempts: 2}}}, false,
			[]string{"talk/turn-1 text ha", "talk retracted the model's stream ended before its answer was complete", "talk~2/turn-1 text whole", "talk~2/turn-1 end"}},
	} {
		var r eventtest.Recorder
		c.cfg.User = agent.Say("go")
		_, err := run(t, agent.New("talk", note, c.model, c.cfg), stone.Config{Watch: &r})
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err := eventtest.Check(r.Events()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if seen := said(r.Events()); !slices.Equal(seen, c.want) {
			t.Errorf("%s: seen\n%s\nwant\n%s", name, strings.Join(seen, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestProgress checks that a slow or broken stream shows in the events.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	m := model([]llm.Delta{
		{Kind: llm.Text, Text: "ha"}, {Kind: llm.Progress, Elapsed: 5 * time.Second},
		{Kind: llm.Restart, Err: &llm.TruncatedError{}, Wait: time.Second}, {Kind: llm.Done, Reply: says("whole")},
	})
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("go")}), stone.Config{Watch: event.Log(slog.NewTextHandler(&b, nil))})
	if got := outcome(t, res, err); got != `{"text":"whole"}` {
		t.Error(got)
	}
	for _, want := range []string{"msg=streaming-progress", "elapsed=5s", "level=WARN msg=api-restart", "wait=1s", "cut short"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// served runs an agent whose model is a server that answers with the given
// streams.
func served(t *testing.T, streams ...string) (stone.Result, []string, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, streams[0])
		if len(streams) > 1 {
			streams = streams[1:]
		}
	}))
	defer server.Close()
	var seen []string
	watch := event.Func(event.LevelDelta, func(e event.Event) {
		if d, ok := e.Data.(event.Delta); ok && d.Kind == event.Text && !d.End {
			seen = append(seen, d.Text)
		}
	})
	client := server.Client()
	defer client.CloseIdleConnections()
	m := openai.New(openai.Config{URL: server.URL, Model: "m", Key: "KEY-1234", HTTPClient: client, Retry: llm.Retry{Max: -1}})
	var log bytes.Buffer
	res, err := stone.Run(t.Context(), agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{agent.Use(echo())}}),
		stone.Config{Watch: event.All(watch, event.Log(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))})
	if strings.Contains(log.String()+fmt.Sprint(err), "KEY-1234") {
		t.Errorf("the key is in a log or an error")
	}
	return res, seen, err
}

const (
	streamHead = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Let me "}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"look."}}]}` + "\n\n"
	streamCall = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"echo","arguments":"{\"text\""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\"a\"}"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	streamText = `data: {"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// TestTextBeforeToolCallInStream: a client that looks only at the first delta would
// take the text for the answer and never run the tool.
func TestTextBeforeToolCallInStream(t *testing.T) {
	res, seen, err := served(t, streamHead+streamCall, streamText)
	if err != nil {
		t.Fatal(err)
	}
	want := "user: begin\nassistant: Let me look.\ncall: echo {\"text\":\"a\"}\ntool: echo a\nassistant: done\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(seen, "|"); got != "Let me |look.|done" {
		t.Errorf("deltas %q", got)
	}
}

// TestStreamEndsHalfWay: the connection is closed regularly, but the answer is
// incomplete.
func TestStreamEndsHalfWay(t *testing.T) {
	res, _, err := served(t, streamHead)
	var cut *llm.TruncatedError
	if got := outcome(t, res, err); got != string(reasons.ModelFailed) || !errors.As(err, &cut) {
		t.Errorf("got %s (%v), want %s around a TruncatedError", got, err, reasons.ModelFailed)
	}
}

// TestOnion checks the order of the middlewares and their contexts on both ways.
func TestOnion(t *testing.T) {
	var trail []string
	ring := func(name string) agent.Middleware {
		return agent.Middleware{Name: name, Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			trail = append(trail, fmt.Sprintf("%s in %d tools %d messages", name, len(c.Tools), len(c.Messages)))
			c.System += name
			c, err := next(ctx, c)
			trail = append(trail, fmt.Sprintf("%s out %d messages %d advice", name, len(c.Messages), len(c.Advice)))
			return c, err
		}}
	}
	skipped := ring("skipped")
	skipped.Guard = func(c agent.Context) bool { return c.Turn > 1 }
	m := model(calls("echo", `{"text":"a"}`), says("done"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{System: agent.Say("s:"), User: agent.Say("begin"),
		Use: []agent.Middleware{ring("a"), agent.Use(echo()), skipped, ring("b")}}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a in 0 tools 1 messages", "b in 1 tools 1 messages", "b out 3 messages 1 advice", "a out 3 messages 1 advice",
		"a in 0 tools 3 messages", "skipped in 1 tools 3 messages", "b in 1 tools 3 messages", "b out 4 messages 0 advice", "skipped out 4 messages 0 advice", "a out 4 messages 0 advice"}
	if !slices.Equal(trail, want) {
		t.Errorf("trail\n%s\nwant\n%s", strings.Join(trail, "\n"), strings.Join(want, "\n"))
	}
	if a, b := m.requests[0].System, m.requests[1].System; a != "s:ab" || b != "s:askippedb" {
		t.Errorf("systems %q, %q", a, b)
	}
	if len(conversation(t, res)) != 4 {
		t.Error("the conversation is not in the node")
	}
}

// TestRebuild checks that a tool can be exchanged anywhere in a pipeline, including in
// an agent's adversary, and that the original is unchanged.
func TestRebuild(t *testing.T) {
	reviewer := agent.New("review", reviewed, model(calls("echo", `{"text":"r"}`), says(`{"ok":true,"reason":""}`), calls("echo", `{"text":"r"}`), says(`{"ok":true,"reason":""}`)),
		agent.Config{User: agent.Say("judge"), Use: []agent.Middleware{agent.Use(echo())}})
	m := model(calls("echo", `{"text":"a"}`), says("x"), calls("echo", `{"text":"a"}`), says("y"))
	p := stone.Seq("all", agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{agent.Use(echo())}, Adversary: reviewer}))
	var stubbed []string
	stub := func(use []agent.Middleware) []agent.Middleware {
		for i := range use {
			t := *use[i].Tool
			t.Run = func(_ context.Context, input json.RawMessage) (agent.Result, error) {
				stubbed = append(stubbed, string(input))
				return agent.Result{Text: "stub"}, nil
			}
			use[i].Tool = &t
		}
		return use
	}
	q := p.Replace(func(a stone.Ashlar) (stone.Ashlar, bool) { return agent.Rebuild(a, stub) })
	for _, a := range []stone.Ashlar{q, p} {
		if _, err := run(t, a, stone.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(stubbed, ""); got != `{"text":"a"}{"text":"r"}` {
		t.Errorf("stubbed calls %s", got)
	}
	if _, ok := agent.Rebuild(stone.Seq("s"), stub); ok {
		t.Error("a sequence was taken for an agent")
	}
}

func TestConversationOfOthers(t *testing.T) {
	d, err := check.Append(dag.DAG{}, passed{"x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*dag.Node{nil, d.Latest()} {
		if _, err := agent.Conversation(n); err == nil || !strings.Contains(err.Error(), noConversation) {
			t.Errorf("%s: got %v", n, err)
		}
	}
}
