package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

func Example() {
	server := httptest.NewServer(script.New(script.Text("Because of Rayleigh scattering.")))
	defer server.Close()

	model := openai.New(openai.Config{Model: "gpt-5-mini", URL: server.URL, Key: "key"})
	reply, err := llm.Collect(context.Background(), model, &llm.Request{
		Messages: []llm.Message{llm.User("Why is the sky blue?")},
	})
	fmt.Println(reply.Text, err)
	// Output: Because of Rayleigh scattering. <nil>
}

// TestBody compares the JSON that is sent for a request.
func TestBody(t *testing.T) {
	details := map[string]json.RawMessage{"openai/reasoning_details": json.RawMessage(`[{"type":"reasoning.encrypted","data":"x"}]`), "openai/reasoning_content": json.RawMessage(`"hm"`)}
	user := []llm.Message{llm.User("hi")}
	for _, c := range []struct {
		name   string
		config openai.Config
		req    llm.Request
		want   string // without model, stream and stream_options
	}{
		{name: "plain", req: llm.Request{System: "s", Messages: user},
			want: `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`},
		{name: "thinking off, as vLLM wants it for Qwen", config: openai.Config{Extra: map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}}},
			req:  llm.Request{Messages: user},
			want: `{"chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"hi"}]}`},
		{name: "tools and results", req: llm.Request{MaxTokens: 7, Messages: []llm.Message{
			{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Input: json.RawMessage(`{"a":1}`)}, {ID: "2", Name: "g", InputText: `{"b`}}},
			llm.ToolResult("1", "x"),
		}, Tools: []llm.Tool{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}}},
			want: `{"max_tokens":7,"messages":[{"role":"assistant","content":null,"tool_calls":[
					{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
					{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"1","content":"x"}],
				"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}},
					{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]}`},
		{name: "metadata", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "a"}}, Metadata: details}}},
			want: `{"messages":[{"role":"assistant","content":"a","reasoning_content":"hm","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}]}`},
		{name: "media", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Text: "see"}, {Media: &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}},
			{Media: &llm.Media{Type: "image/png", URL: "http://x/y.png"}}, {Media: &llm.Media{Type: "audio/mpeg", Data: []byte("mp3")}}, {Media: &llm.Media{Type: "application/pdf", Data: []byte("pdf"), Name: "a.pdf"}}, {Value: json.RawMessage(`[1]`)}}}}},
			want: `{"messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},
				{"type":"image_url","image_url":{"url":"http://x/y.png"}},{"type":"input_audio","input_audio":{"data":"bXAz","format":"mp3"}},
				{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"}},{"type":"text","text":"[1]"}]}]}`},
		{name: "format, limit and extra", config: openai.Config{MaxTokens: 9, MaxTokensField: "max_completion_tokens", Extra: map[string]any{"stream_options": nil, "seed": 3, "reasoning": map[string]any{"effort": "low"}}},
			req: llm.Request{Messages: user, ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"type":"object"}`)}},
			want: `{"max_completion_tokens":9,"messages":[` + told(`{\"type\":\"object\"}`) + `,{"role":"user","content":"hi"}],"seed":3,"reasoning":{"effort":"low"},
				"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}}`},
		{name: "strict format", req: llm.Request{Messages: user, ResponseFormat: &llm.Format{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}},
			want: `{"messages":[` + told(`{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}`) + `,{"role":"user","content":"hi"}],
				"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"n":{"type":["integer","null"]}},"required":["n"],"additionalProperties":false}}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, want map[string]any
			url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
				if err := json.Unmarshal(body, &got); err != nil {
					t.Error(err)
				}
				fakeserver.Stream(w, "data: [DONE]\n\n")
			})
			c.config.Model, c.config.URL, c.config.Key = "m", url, "test-key"
			if _, err := llm.Collect(t.Context(), openai.New(c.config), &c.req); err != nil {
				t.Fatal(err)
			}
			if got["model"] != "m" || got["stream"] != true {
				t.Errorf("model %v, stream %v", got["model"], got["stream"])
			}
			if _, removed := c.config.Extra["stream_options"]; !removed && got["stream_options"] == nil || removed && got["stream_options"] != nil {
				t.Errorf("stream_options %v", got["stream_options"])
			}
			for _, key := range []string{"model", "stream", "stream_options"} {
				delete(got, key)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				raw, _ := json.Marshal(got)
				t.Errorf("\n got %s\nwant %s", raw, c.want)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	for want, req := range map[string]llm.Request{
		"openai: no model: name one in Config.Model or Request.Model":                                              {Messages: []llm.Message{llm.User("hi")}},
		"openai: a request without messages: Request.Messages needs at least one":                                  {Model: "m"},
		`openai: message 0: unknown role "robot": use system, user, assistant or tool`:                             {Model: "m", Messages: []llm.Message{{Role: "robot"}}},
		`openai: message 0: media of type "audio/wav" by URL: Chat Completions takes only images by URL, set Data`: {Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Media: &llm.Media{Type: "audio/wav", URL: "http://x"}}}}}},
	} {
		m := openai.New(openai.Config{URL: "http://test.invalid", Key: "test-key"})
		if _, err := llm.Collect(t.Context(), m, &req); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant %s", err, want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-from-environment")
	t.Setenv("OPENAI_BASE_URL", "")
	for url, want := range map[string]string{
		"":                          "https://api.openai.com/v1/responses",
		"https://api.openai.com/v1": "https://api.openai.com/v1/responses",
		"https://eu.api.openai.com": "https://eu.api.openai.com/v1/responses",
		"https://api.openai.com/v1/chat/completions": "https://api.openai.com/v1/chat/completions",
		"http://localhost:8000/v1/responses/":        "http://localhost:8000/v1/responses",
		"http://localhost:8000":                      "http://localhost:8000/v1/chat/completions",
		"http://localhost:8000/":                     "http://localhost:8000/v1/chat/completions",
		"http://localhost:8000/v1":                   "http://localhost:8000/v1/chat/completions",
		"https://api.groq.com/openai/v1/":            "https://api.groq.com/openai/v1/chat/completions",
		"https://openrouter.ai/api":                  "https://openrouter.ai/api/v1/chat/completions",
		"https://api.z.ai/api/paas/v4":               "https://api.z.ai/api/paas/v4/chat/completions",
		"https://host.invalid/v1beta/openai":         "https://host.invalid/v1beta/openai/chat/completions",
		"https://api.perplexity.ai/chat/completions": "https://api.perplexity.ai/chat/completions",
		"https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1": "https://x.openai.azure.com/openai/deployments/d/chat/completions",
	} {
		m := openai.New(openai.Config{Model: "m", URL: url})
		if got := m.Info().Endpoint; got != want || m.Check() != nil {
			t.Errorf("URL %q: endpoint %s, %v, want %s", url, got, m.Check(), want)
		}
	}
	t.Setenv("OPENAI_BASE_URL", "http://from.environment.invalid/v1")
	if got := openai.New(openai.Config{}).Info().Endpoint; got != "http://from.environment.invalid/v1/chat/completions" {
		t.Errorf("endpoint from the environment: %s", got)
	}
}

func TestHeaders(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-from-environment")
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	for _, c := range []struct {
		config     openai.Config
		name, want string
	}{
		{openai.Config{Key: "mine"}, "Authorization", "Bearer mine"},
		{openai.Config{}, "Authorization", ""}, // the key of the environment is not for this server
		{openai.Config{Key: llm.NoKey}, "Authorization", ""},
		{openai.Config{Header: map[string]llm.Secret{"api-key": "azure"}}, "Api-Key", "azure"},
		{openai.Config{Header: map[string]llm.Secret{"authorization": "Basic x"}}, "Authorization", "Basic x"},
		{openai.Config{}, "Accept", "text/event-stream"},
	} {
		c.config.Model, c.config.URL = "m", server.URL
		if _, err := llm.Collect(t.Context(), openai.New(c.config), &llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil {
			t.Fatal(err)
		}
		if got.Get(c.name) != c.want {
			t.Errorf("%s: %q, want %q", c.name, got.Get(c.name), c.want)
		}
	}
}

// TestWhoGetsTheKey checks that the key of the environment goes only to the provider's own
// servers, and to the server that the environment names.
func TestWhoGetsTheKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-from-environment")
	for _, c := range []struct {
		environment string
		config      openai.Config
		want        string
	}{
		{"", openai.Config{}, "Bearer key-from-environment"},
		{"", openai.Config{URL: "https://api.openai.com/v1"}, "Bearer key-from-environment"},
		{"", openai.Config{URL: "https://eu.api.openai.com"}, "Bearer key-from-environment"},
		{"http://127.0.0.1:1", openai.Config{}, "Bearer key-from-environment"},
		{"", openai.Config{Key: llm.NoKey}, ""},
		{"http://127.0.0.1:1", openai.Config{Key: llm.NoKey}, ""},
		{"http://127.0.0.1:1", openai.Config{URL: "http://127.0.0.1:2"}, ""},
		{"", openai.Config{URL: "http://api.openai.com"}, ""}, // in plain text
		{"", openai.Config{URL: "https://api.openai.com.evil.test"}, ""},
		{"", openai.Config{URL: "https://evilapi.openai.com"}, ""},
		{"", openai.Config{URL: "https://api.openai.com:8443"}, ""},
		{"", openai.Config{URL: "https://api.openai.com@evil.test"}, "Basic YXBpLm9wZW5haS5jb206"}, // the user of the URL
		{"", openai.Config{URL: "https://evil.test/api.openai.com"}, ""},
	} {
		t.Setenv("OPENAI_BASE_URL", c.environment)
		var got []string
		c.config.Model, c.config.Retry = "m", llm.Retry{Max: -1}
		c.config.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.Header.Get("Authorization"))
			return nil, io.EOF
		})}
		_, err := llm.Collect(t.Context(), openai.New(c.config), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%q, %q: sent %q, want %q (%v)", c.environment, c.config.URL, got, c.want, err)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestCheck(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	for _, c := range []struct {
		config openai.Config
		want   string
	}{
		{openai.Config{Key: "k"}, ""},
		{openai.Config{URL: "http://localhost:8000"}, ""},
		{openai.Config{}, "openai: bad Config: no key for https://api.openai.com: set OPENAI_API_KEY or, in Go, Config.Key"},
		{openai.Config{URL: "localhost:8000"}, `openai: bad Config: URL "localhost:8000" is not an absolute http or https URL`},
		{openai.Config{URL: "http://x", Protocol: openai.Responses}, ""},
		{openai.Config{URL: "http://x", Protocol: "gopher"}, `openai: bad Config: unknown Protocol "gopher": use ChatCompletions or Responses`},
		{openai.Config{URL: "http://x/v1/responses", Protocol: openai.ChatCompletions}, `openai: bad Config: Protocol is "chat-completions", but URL ends in /responses`},
		{openai.Config{URL: "http://x", Stateful: true}, "openai: bad Config: Stateful is for Responses, but Protocol is ChatCompletions"},
		{openai.Config{Key: "k", Protocol: openai.ChatCompletions, ThinkTags: "leave"}, `openai: bad Config: unknown ThinkTags "leave": use "open", "keep", or leave it out`},
		{openai.Config{Key: "k", ThinkTags: "open"}, "openai: bad Config: MaxTokensField and ThinkTags are for ChatCompletions, but Protocol is Responses"},
		{openai.Config{Key: "k", Extra: map[string]any{"input": "x"}}, "openai: bad Config: Extra must not set input: use the fields of Config and Request"},
		{openai.Config{URL: "http://x", Extra: map[string]any{"stream": false, "messages": nil}}, "openai: bad Config: Extra must not set messages, stream: use the fields of Config and Request"},
	} {
		err := openai.New(c.config).Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%+v: %v\nwant %s", c.config, err, c.want)
		}
	}
}

// told is the message that tells a foreign server the schema of the answer.
func told(schema string) string {
	return `{"role":"system","content":"Your final answer is JSON that fits this schema, and nothing else:\n` + schema + `"}`
}
