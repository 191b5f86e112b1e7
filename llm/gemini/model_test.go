package gemini_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
)

// server answers every request in the same way, and keeps the last.
type server struct {
	status  int
	answer  string
	request *http.Request
	body    map[string]any
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	s.request, s.body = r, nil
	if err = cmp.Or(err, json.Unmarshal(raw, &s.body)); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: cmp.Or(s.status, 200), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.answer)), Request: r}, nil
}

const done = `data: {"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}` + "\r\n\r\n"

func TestRequest(t *testing.T) {
	const substitute = `"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`
	const signed = `{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"s"}`
	call := func(id, name, input string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}
	}
	kept := func(content string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"gemini/content": json.RawMessage(content)}
	}
	failed := llm.ToolResult("b", "no")
	failed.IsError = true
	for _, c := range []struct {
		name   string
		config gemini.Config
		req    llm.Request
		want   string
	}{
		{name: "system and limit", config: gemini.Config{MaxTokens: 7, Extra: map[string]any{"generationConfig": map[string]any{"temperature": 0, "maxOutputTokens": 1}, "safetySettings": []any{}}},
			req: llm.Request{System: "s", Messages: []llm.Message{{Role: llm.RoleSystem, Content: []llm.Part{{Text: "t"}}}, llm.User("a"), llm.User("b"), llm.Assistant("")}},
			want: `{"systemInstruction":{"parts":[{"text":"s\n\nt"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]}],
				"generationConfig":{"temperature":0,"maxOutputTokens":7},"safetySettings":[]}`},
		{name: "no text", req: llm.Request{Messages: []llm.Message{llm.User(""), llm.Assistant("a"), llm.Assistant(""), llm.User("b"), llm.User("")}},
			want: `{"contents":[{"role":"user","parts":[{"text":""}]},{"role":"model","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]}]}`},
		{name: "media", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{
			{Media: &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}, {Media: &llm.Media{Type: "video/mp4", URL: "https://youtu.be/x"}}, {Value: json.RawMessage(`[1]`)}}}}},
			want: `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},
				{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"}},{"text":"[1]"}]}]}`},
		{name: "tools and format", req: llm.Request{Messages: []llm.Message{llm.User("a")}, MaxTokens: 3, Tools: []llm.Tool{{Name: "f", Description: "d"}, {Name: "g", Schema: json.RawMessage(`{"type":"object"}`)}},
			ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","multipleOf":2}},"additionalProperties":false}`)}},
			want: `{"systemInstruction":{"parts":[{"text":"Your final answer is JSON that fits this schema, and nothing else:\n{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"multipleOf\":2}},\"additionalProperties\":false}"}]},
				"contents":[{"role":"user","parts":[{"text":"a"}]}],
				"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{}}},{"name":"g","parametersJsonSchema":{"type":"object","properties":{}}}]}],
				"generationConfig":{"maxOutputTokens":3,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"n":{"type":"integer","description":"Must fit {\"multipleOf\":2}."}},"required":[],"additionalProperties":false}}}`},
		{name: "an older model has either tools or a format", req: llm.Request{Model: "gemini-2.5-pro", System: "s", Messages: []llm.Message{llm.User("a")}, Tools: []llm.Tool{{Name: "f"}},
			ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"type":"object","properties":{}}`)}},
			want: `{"systemInstruction":{"parts":[{"text":"s\n\nYour final answer is JSON that fits this schema, and nothing else:\n{\"type\":\"object\",\"properties\":{}}"}]},
				"contents":[{"role":"user","parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}]}`},
		{name: "another provider's calls", req: llm.Request{Messages: []llm.Message{
			{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "x"}}, ToolCalls: []llm.ToolCall{call("a", "f", `{"a":1}`), {ID: "b", Name: "g", InputText: `{"cut`}}},
			{Role: llm.RoleTool, CallID: "a", Content: []llm.Part{{Value: json.RawMessage(`{"n":1}`)}}}, failed, llm.User("and?")}},
			want: `{"contents":[{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"f","args":{"a":1}},` + substitute + `},{"functionCall":{"name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":{"n":1}}}},{"functionResponse":{"name":"g","response":{"error":"no"}}},{"text":"and?"}]}]}`},
		{name: "its own calls", req: llm.Request{Messages: []llm.Message{
			{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{call("call_0", "f", `{"a":1}`), call("x", "g", `{}`)}, Metadata: kept(`[` + signed + `,{"functionCall":{"id":"x","name":"g"}}]`)},
			llm.ToolResult("x", "2"), {Role: llm.RoleTool, CallID: "call_0", Content: []llm.Part{{Text: "see"}, {Media: &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}}}},
			want: `{"contents":[{"role":"model","parts":[` + signed + `,{"functionCall":{"id":"x","name":"g"}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"x","name":"g","response":{"output":"2"}}},
					{"functionResponse":{"name":"f","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}}]}]}`},
		{name: "a changed message keeps its calls", req: llm.Request{Messages: []llm.Message{
			{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "short"}}, ToolCalls: []llm.ToolCall{call("call_0", "f", `{"a":1}`)}, Metadata: kept(`[{"text":"long"},` + signed + `]`)}, llm.ToolResult("call_0", "2")}},
			want: `{"contents":[{"role":"model","parts":[{"text":"short"},` + signed + `]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"2"}}}]}]}`},
		{name: "content that is broken", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "x"}}, Metadata: kept(`[7]`)}}},
			want: `{"contents":[{"role":"model","parts":[{"text":"x"}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &server{answer: done}
			c.config.Model, c.config.URL, c.config.HTTPClient = "m", "http://test.invalid", &http.Client{Transport: s}
			if reply, err := llm.Collect(t.Context(), gemini.New(c.config), &c.req); err != nil || reply.Text != "ok" {
				t.Fatal(reply, err)
			}
			var want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(any(s.body), want) {
				got, _ := json.Marshal(s.body)
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "of the environment")
	const stream = ":streamGenerateContent?alt=sse"
	const vertex = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google"
	for _, c := range []struct {
		base, model, want, key string
		whole                  bool
	}{
		{"", "gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash" + stream, "of the environment", false},
		{"", "models/m", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", "of the environment", true},
		{"https://generativelanguage.googleapis.com/v1alpha/", "m", "https://generativelanguage.googleapis.com/v1alpha/models/m" + stream, "of the environment", false},
		{vertex, "m", vertex + "/models/m" + stream, "", false},
		{"http://127.0.0.1:9?key=k", "a/../b?c", "http://127.0.0.1:9/v1beta/models/a%2F..%2Fb%3Fc:streamGenerateContent?alt=sse&key=k", "", false},
	} {
		s := &server{answer: done}
		m := gemini.New(gemini.Config{Model: "other", URL: c.base, NoStream: c.whole, HTTPClient: &http.Client{Transport: s}})
		if _, err := llm.Collect(t.Context(), m, &llm.Request{Model: c.model, Messages: []llm.Message{llm.User("a")}}); err != nil {
			t.Errorf("%s: %v", c.base, err)
			continue
		}
		if got := s.request.URL.String(); got != c.want {
			t.Errorf("%s, %s: asked %s, want %s", c.base, c.model, got, c.want)
		}
		if got := s.request.Header.Get("x-goog-api-key"); got != c.key {
			t.Errorf("%s: the key %q was sent, want %q", c.base, got, c.key)
		}
	}
}

func TestErrors(t *testing.T) {
	const busy = `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"47s"}]}}`
	ask := func(config gemini.Config, req *llm.Request, s *server) error {
		config.URL, config.HTTPClient, config.Retry = "http://test.invalid", &http.Client{Transport: s}, llm.Retry{Max: -1}
		_, err := llm.Collect(t.Context(), gemini.New(config), req)
		return err
	}
	hi := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("hi")}}
	err := ask(gemini.Config{}, hi, &server{status: 429, answer: busy})
	if h := (*llm.HTTPError)(nil); !errors.As(err, &h) || h.RetryAfter != 47*time.Second || !strings.HasPrefix(err.Error(), "llm: HTTP status 429: Quota exceeded.; the server asks to wait 47s") {
		t.Errorf("error %v, want the message and the wait", err)
	}
	err = ask(gemini.Config{}, hi, &server{answer: `data: {"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}` + "\n\n"})
	if p := (*llm.ProviderError)(nil); !errors.As(err, &p) || p.Type != "MALFORMED_FUNCTION_CALL" || !llm.Retryable(err) {
		t.Errorf("error %v, want one of the provider that can be retried", err)
	}
	for want, run := range map[string]func() error{
		`gemini: message 1: it has the result of the tool call "x", but no earlier message makes that call`: func() error {
			return ask(gemini.Config{}, &llm.Request{Model: "m", Messages: []llm.Message{llm.User("a"), llm.ToolResult("x", "b")}}, nil)
		},
		`gemini: message 0: unknown role "robot": use system, user, assistant or tool`: func() error {
			return ask(gemini.Config{}, &llm.Request{Model: "m", Messages: []llm.Message{{Role: "robot"}}}, nil)
		},
		"gemini: generationConfig in Extra is a string: use a map[string]any": func() error {
			return ask(gemini.Config{MaxTokens: 1, Extra: map[string]any{"generationConfig": "x"}}, hi, nil)
		},
		"gemini: bad Config: Extra must not set contents, tools: use the fields of Config and Request": func() error {
			return ask(gemini.Config{Extra: map[string]any{"contents": 1, "tools": 2, "labels": 3}}, hi, nil)
		},
		"gemini: bad Config: no key for https://generativelanguage.googleapis.com: set GEMINI_API_KEY or, in Go, Config.Key": func() error {
			t.Setenv("GEMINI_API_KEY", "")
			return gemini.New(gemini.Config{}).Check()
		},
	} {
		if got := fmt.Sprint(run()); got != want {
			t.Errorf("error %s\nwant %s", got, want)
		}
	}
}
