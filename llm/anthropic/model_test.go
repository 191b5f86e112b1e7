package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/script"
)

func Example() {
	server := httptest.NewServer(script.New(script.Text("Because of Rayleigh scattering.")))
	defer server.Close()

	model := anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", URL: server.URL, Key: "key"})
	for d, err := range model.Stream(context.Background(), &llm.Request{Messages: []llm.Message{llm.User("Why is the sky blue?")}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d.Kind == llm.Text {
			fmt.Print(d.Text)
		}
	}
	// Output: Because of Rayleigh scattering.
}

// server answers with event streams, one after the other, and keeps the bodies.
func server(t *testing.T, streams ...string) (url string, bodies *[]map[string]any) {
	bodies = new([]map[string]any)
	url = fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, raw []byte) {
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Error(err)
		}
		n := len(*bodies)
		*bodies = append(*bodies, body)
		fakeserver.Stream(w, streams[min(n, len(streams)-1)])
	})
	return url, bodies
}

func answer(id, stop string, blocks ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "data: {\"type\":\"message_start\",\"message\":{\"id\":%q,\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n", id)
	for i, block := range blocks {
		fmt.Fprintf(&b, "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n", i, block)
	}
	fmt.Fprintf(&b, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%q},\"usage\":{\"output_tokens\":5}}\n\ndata: {\"type\":\"message_stop\"}\n\n", stop)
	return b.String()
}

const (
	search = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}}`
	result = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`
	signed = `{"type":"thinking","thinking":"hm","signature":"sig"}`
)

func TestPausedTurn(t *testing.T) {
	url, bodies := server(t,
		answer("m1", "pause_turn", `{"type":"text","text":"Let me look. "}`, search),
		answer("m2", "tool_use", result, `{"type":"text","text":"Found."}`, `{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}`),
		answer("m3", "end_turn", `{"type":"text","text":"Done."}`))
	m := anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key"})
	req := &llm.Request{Messages: []llm.Message{llm.User("Look it up.")}}
	reply, err := llm.Collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text != "Let me look. Found." || reply.StopReason != "tool_use" || *reply.Usage.OutputTokens != 10 || len(reply.ToolCalls) != 1 {
		t.Errorf("reply %+v, want both parts as one", reply)
	}
	want := `{"role":"assistant","content":[{"type":"text","text":"Let me look. "},` + search + `]}`
	if got := (*bodies)[1]["messages"].([]any)[1]; !sameJSON(t, got, want) {
		t.Errorf("the turn was sent again as %v, want %s", got, want)
	}
	req.Messages = append(req.Messages, reply.Message(), llm.ToolResult("t1", "ok"))
	if _, err := llm.Collect(t.Context(), m, req); err != nil {
		t.Fatal(err)
	}
	want = `{"role":"assistant","content":[{"type":"text","text":"Let me look. "},` + search + "," + result +
		`,{"type":"text","text":"Found."},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]}`
	if got := (*bodies)[2]["messages"].([]any)[1]; !sameJSON(t, got, want) {
		t.Errorf("the next turn was sent as %v, want %s", got, want)
	}
}

func TestPausedForEver(t *testing.T) {
	url, bodies := server(t, answer("m1", "pause_turn", `{"type":"text","text":"a"}`, search))
	req := &llm.Request{Messages: []llm.Message{llm.User("Look it up.")}}
	for limit, want := range map[int]struct {
		text  string
		asked int
		err   string
	}{2: {"aaa", 3, "anthropic: the turn is still paused; raise Config.MaxContinuations"}, -1: {"a", 1, "<nil>"}} {
		*bodies = nil
		m := anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key", MaxContinuations: limit})
		reply, err := llm.Collect(t.Context(), m, req)
		if fmt.Sprint(err) != want.err || reply.Text != want.text || len(*bodies) != want.asked {
			t.Errorf("limit %d: %q, %v after %d requests, want %+v", limit, reply.Text, err, len(*bodies), want)
		}
	}
}

// TestBody compares the JSON that is sent for a request.
func TestBody(t *testing.T) {
	thought := map[string]json.RawMessage{"anthropic/content": json.RawMessage(`[` + signed + `,{"type":"text","text":"a"}]`)}
	for _, c := range []struct {
		name   string
		config anthropic.Config
		req    llm.Request
		want   string // without model, max_tokens and stream
	}{
		{name: "plain", req: llm.Request{System: "s", Messages: []llm.Message{llm.User("hi")}},
			want: `{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		{name: "results of one turn are one message", req: llm.Request{Messages: []llm.Message{
			{Role: llm.RoleSystem, Content: []llm.Part{{Text: "s"}}},
			llm.User("hi"),
			{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Input: json.RawMessage(`{"a":1}`)}, {ID: "2", Name: "g", InputText: `{"b`}}},
			llm.ToolResult("1", "x"),
			{Role: llm.RoleTool, CallID: "2", IsError: true, Content: []llm.Part{{Text: "cut off"}}},
			llm.Assistant(""),
			llm.User("go on"),
		}},
			want: `{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},
				{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":1}},{"type":"tool_use","id":"2","name":"g","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}]},
					{"type":"tool_result","tool_use_id":"2","is_error":true,"content":[{"type":"text","text":"cut off"}]},
					{"type":"text","text":"go on"}]}]}`},
		{name: "kept blocks", req: llm.Request{Messages: []llm.Message{llm.User("hi"), {Role: llm.RoleAssistant, Content: []llm.Part{{Text: "a"}}, Metadata: thought}}},
			want: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[` + signed + `,{"type":"text","text":"a"}]}]}`},
		{name: "kept blocks of a message that was changed", req: llm.Request{Messages: []llm.Message{llm.User("hi"), {Role: llm.RoleAssistant, Content: []llm.Part{{Text: "b"}}, Metadata: thought}}},
			want: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[` + signed + `,{"type":"text","text":"b"}]}]}`},
		{name: "media and cache control", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Metadata: map[string]json.RawMessage{"anthropic/cache_control": json.RawMessage(`{"type":"ephemeral"}`)},
			Content: []llm.Part{{Media: &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}, {Media: &llm.Media{Type: "application/pdf", URL: "http://x/y.pdf", Name: "y"}}, {Value: json.RawMessage(`[1]`)}}}}},
			want: `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
				{"type":"document","title":"y","source":{"type":"url","url":"http://x/y.pdf"}},{"type":"text","text":"[1]","cache_control":{"type":"ephemeral"}}]}]}`},
		{name: "tools, format and extra", config: anthropic.Config{Extra: map[string]any{"output_config": map[string]any{"effort": "low"}, "top_k": 3}},
			req: llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "f", Description: "d"}}, ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0}}}`)}},
			want: `{"system":"Your final answer is JSON that fits this schema, and nothing else:\n{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":0}}}",
				"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}}}],
				"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer","description":"Must fit {\"minimum\":0}."}},"required":[],"additionalProperties":false}}},"top_k":3}`},
		{name: "a format that cannot be enforced", req: llm.Request{System: "Be brief.", Messages: []llm.Message{llm.User("hi")}, ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"type":"object"}`)}},
			want: `{"system":"Be brief.\n\nYour final answer is JSON that fits this schema, and nothing else:\n{\"type\":\"object\"}",
				"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, bodies := server(t, answer("m", "end_turn"))
			c.config.Model, c.config.URL, c.config.Key = "m", url, "test-key"
			if _, err := llm.Collect(t.Context(), anthropic.New(c.config), &c.req); err != nil {
				t.Fatal(err)
			}
			got := (*bodies)[0]
			if got["model"] != "m" || got["max_tokens"] != 16384.0 || got["stream"] != true {
				t.Errorf("model, max_tokens, stream: %v, %v, %v", got["model"], got["max_tokens"], got["stream"])
			}
			for _, key := range []string{"model", "max_tokens", "stream"} {
				delete(got, key)
			}
			if !sameJSON(t, got, c.want) {
				raw, _ := json.Marshal(got)
				t.Errorf("\n got %s\nwant %s", raw, c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	m := anthropic.New(anthropic.Config{Extra: map[string]any{"tools": 1, "system": 2, "stream": false, "top_k": 3}})
	want := "anthropic: bad Config: no key for https://api.anthropic.com: set ANTHROPIC_API_KEY or, in Go, Config.Key; Extra must not set stream, system, tools: use the fields of Config and Request"
	if err := m.Check(); err == nil || err.Error() != want {
		t.Errorf("Check: %v\nwant %s", err, want)
	}
	if _, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}}); err == nil || err.Error() != want {
		t.Errorf("first use: %v, want what Check says", err)
	}
}

func sameJSON(t *testing.T, got any, want string) bool {
	t.Helper()
	var y any
	if err := json.Unmarshal([]byte(want), &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(got, y)
}
