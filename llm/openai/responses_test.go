package openai_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
)

// specified returns a schema of the Open Responses specification.
func specified(t *testing.T, name string) *schema.Schema {
	t.Helper()
	data, err := os.ReadFile(need.Recorded(t, "data/openresponses/openapi-2026-04-24.json")[0])
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	ref, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": doc["components"]})
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// responder answers every request with a body, and keeps the last request.
func responder(t *testing.T, mediaType string, bodies ...string) (url string, last *map[string]any) {
	last = new(map[string]any)
	n := 0
	url = fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if err := json.Unmarshal(body, last); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", mediaType)
		io.WriteString(w, bodies[min(n, len(bodies)-1)])
		n++
	})
	return url, last
}

const emptyResponse = `{"id":"resp_1","object":"response","status":"completed","output":[]}`

func TestResponsesBody(t *testing.T) {
	user := []llm.Message{llm.User("hi")}
	output := func(items string) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "a"}}, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Input: json.RawMessage(`{}`)}},
			Metadata: map[string]json.RawMessage{"openai/output": json.RawMessage(items), "openai/response": json.RawMessage(`"resp_0"`)}}
	}
	plain := output("")
	plain.Metadata = nil
	const thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`
	const rest = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[]}]},
		{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"{}"}`
	const anonymous = `{"type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[]}]},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`
	const made = `{"type":"message","role":"assistant","content":"a"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`
	const hi = `{"type":"message","role":"user","content":"hi"}`
	const result = `{"type":"function_call_output","call_id":"1","output":"x"}`
	const closed = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
	told, err := json.Marshal(structured.System("", &llm.Format{Schema: json.RawMessage(closed)}, false))
	if err != nil {
		t.Fatal(err)
	}
	edited := output("[" + thought + "," + rest + "]")
	edited.Content = []llm.Part{{Text: "another"}}
	for _, c := range []struct {
		name   string
		config openai.Config
		path   string // of the server that gave the metadata
		req    llm.Request
		want   string // without model, stream, store and include
	}{
		{name: "plain", req: llm.Request{System: "s", MaxTokens: 99, Messages: []llm.Message{{Role: llm.RoleSystem, Content: []llm.Part{{Text: "t"}}}, user[0]}},
			want: `{"instructions":"s","max_output_tokens":99,"input":[{"type":"message","role":"system","content":"t"},` + hi + `]}`},
		{name: "tools and results", req: llm.Request{Messages: []llm.Message{user[0], plain, llm.ToolResult("1", "x")},
			Tools: []llm.Tool{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}}},
			want: `{"input":[` + hi + `,` + made + `,` + result + `],
				"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":false},
					{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false}]}`},
		{name: "reasoning comes back", req: llm.Request{Messages: []llm.Message{output("[" + thought + "," + rest + "]"), llm.ToolResult("1", "x")}},
			want: `{"input":[` + thought + `,` + rest + `,` + result + `]}`},
		{name: "reasoning that is not encrypted cannot", req: llm.Request{Messages: []llm.Message{output(`[{"type":"reasoning","id":"rs_1","summary":[]},` + rest + "]")}},
			want: `{"input":[` + anonymous + `]}`},
		{name: "nor that of a message that was changed", req: llm.Request{Messages: []llm.Message{edited}},
			want: `{"input":[{"type":"message","role":"assistant","content":"another"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}`},
		{name: "nor that of another server", path: "/other", config: openai.Config{Stateful: true}, req: llm.Request{Messages: []llm.Message{output("[" + thought + "," + rest + "]"), llm.ToolResult("1", "x")}},
			want: `{"input":[` + made + `,` + result + `]}`},
		{name: "stateful", config: openai.Config{Stateful: true}, req: llm.Request{System: "s", Messages: []llm.Message{user[0], output("[" + thought + "," + rest + "]"), llm.ToolResult("1", "x")}},
			want: `{"instructions":"s","previous_response_id":"resp_0","input":[` + result + `]}`},
		{name: "stateful, with nothing new", config: openai.Config{Stateful: true}, req: llm.Request{Messages: []llm.Message{user[0], plain}}, want: `{"input":[` + hi + `,` + made + `]}`},
		{name: "media", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Text: "see"},
			{Media: &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}, {Media: &llm.Media{Type: "application/pdf", Data: []byte("pdf"), Name: "a.pdf"}},
			{Media: &llm.Media{Type: "application/pdf", URL: "http://x/y.pdf"}}, {Value: json.RawMessage(`[1]`)}}}}},
			want: `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"},
				{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"},{"type":"input_file","file_url":"http://x/y.pdf"},{"type":"input_text","text":"[1]"}]}]}`},
		{name: "a picture as a result", req: llm.Request{Messages: []llm.Message{{Role: llm.RoleTool, CallID: "1", Content: []llm.Part{{Media: &llm.Media{Type: "image/png", URL: "http://x/y.png"}}}}}},
			want: `{"input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"http://x/y.png","detail":"auto"}]}]}`},
		{name: "format and extra", config: openai.Config{MaxTokens: 19, Extra: map[string]any{"text": map[string]any{"verbosity": "low"}, "reasoning": map[string]any{"effort": "low"}}},
			req: llm.Request{Messages: user, ResponseFormat: &llm.Format{Name: "n", Schema: json.RawMessage(closed)}},
			want: `{"instructions":` + string(told) + `,"max_output_tokens":19,"reasoning":{"effort":"low"},"input":[` + hi + `],
				"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","strict":true,"schema":` + closed + `}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, got := responder(t, "application/json", emptyResponse)
			c.config.Model, c.config.URL, c.config.Key, c.config.Protocol = "m", url, "test-key", openai.Responses
			for _, m := range c.req.Messages {
				if m.Metadata != nil {
					m.Metadata["stone/server"] = json.RawMessage(`"` + url + cmp.Or(c.path, "/v1/responses") + `"`)
				}
			}
			if _, err := llm.Collect(t.Context(), openai.New(c.config), &c.req); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(*got)
			if err != nil {
				t.Fatal(err)
			}
			if (*got)["model"] != "m" || (*got)["stream"] != true || (*got)["store"] != c.config.Stateful || !reflect.DeepEqual((*got)["include"], []any{"reasoning.encrypted_content"}) {
				t.Errorf("body %s", raw)
			}
			for _, key := range []string{"model", "stream", "store", "include"} {
				delete(*got, key)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("\n got %s\nwant %s", raw, c.want)
			}
			if err := specified(t, "CreateResponseBody").Validate(t.Context(), raw); err != nil {
				t.Errorf("not as specified: %v\n%s", err, raw)
			}
		})
	}
}

// TestEncryptedReasoning checks which models are asked for it: the gpt-4o models refuse.
func TestEncryptedReasoning(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-5-mini": true, "o4-mini": true, "gpt-5.6-sol": true, "qwen3": true,
		"gpt-4o": false, "gpt-4.1-mini": false, "gpt-5-chat-latest": false, "ft:gpt-4.1:acme::x": false,
	} {
		url, got := responder(t, "application/json", emptyResponse)
		m := openai.New(openai.Config{Model: model, URL: url, Protocol: openai.Responses})
		if _, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil {
			t.Fatal(err)
		}
		if asked := (*got)["include"] != nil; asked != want {
			t.Errorf("%s: asked %v, want %v", model, asked, want)
		}
	}
}

// TestReplay continues recorded conversations: what is sent again is what the recorded client
// sent, which the server accepted.
func TestReplay(t *testing.T) {
	replayed := 0
	for _, file := range need.Recorded(t, "data/streams/responses/*.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var exchange struct {
			Request struct{ Input []map[string]any }
		}
		if json.Unmarshal(data, &exchange) != nil {
			continue // the input is a string
		}
		for items := exchange.Request.Input; len(items) > 0; items = items[1:] {
			if items[0]["type"] != "reasoning" {
				continue
			}
			n := 1
			for n < len(items) && items[n]["role"] != "user" && items[n]["type"] != "function_call_output" {
				n++
			}
			response, err := json.Marshal(map[string]any{"id": "resp_1", "object": "response", "status": "completed", "output": items[:n]})
			if err != nil {
				t.Fatal(err)
			}
			url, got := responder(t, "application/json", string(response))
			m := openai.New(openai.Config{Model: "m", URL: url, Protocol: openai.Responses})
			req := &llm.Request{Messages: []llm.Message{llm.User("hi")}}
			reply, err := llm.Collect(t.Context(), m, req)
			if err != nil {
				t.Fatal(err)
			}
			req.Messages = append(req.Messages, reply.Message(), llm.User("on"))
			if _, err := llm.Collect(t.Context(), m, req); err != nil {
				t.Fatal(err)
			}
			sent := (*got)["input"].([]any)
			for i, item := range items[:n] {
				for key, value := range item {
					if value == nil {
						delete(item, key) // as good as absent
					}
				}
				again, _ := sent[i+1].(map[string]any)
				for key, value := range again {
					if value == nil {
						delete(again, key)
					}
				}
				if !reflect.DeepEqual(again, item) {
					t.Errorf("%s: sent %v\nwant %v", filepath.Base(file), again, item)
				}
			}
			replayed++
			items = items[n-1:]
		}
	}
	if replayed < 5 {
		t.Errorf("%d conversations replayed, want at least 5", replayed)
	}
}

// TestResponsesPeer checks the events of package script, on which other tests rely.
func TestResponsesPeer(t *testing.T) {
	names := map[string]string{
		"response.created": "ResponseCreated", "response.completed": "ResponseCompleted", "response.incomplete": "ResponseIncomplete", "error": "Error",
		"response.output_item.added": "ResponseOutputItemAdded", "response.output_item.done": "ResponseOutputItemDone",
		"response.content_part.added": "ResponseContentPartAdded", "response.content_part.done": "ResponseContentPartDone",
		"response.output_text.delta": "ResponseOutputTextDelta", "response.output_text.done": "ResponseOutputTextDone",
		"response.refusal.delta": "ResponseRefusalDelta", "response.refusal.done": "ResponseRefusalDone",
		"response.reasoning_summary_part.added": "ResponseReasoningSummaryPartAdded", "response.reasoning_summary_part.done": "ResponseReasoningSummaryPartDone",
		"response.reasoning_summary_text.delta": "ResponseReasoningSummaryDelta", "response.reasoning_summary_text.done": "ResponseReasoningSummaryDone",
		"response.function_call_arguments.delta": "ResponseFunctionCallArgumentsDelta", "response.function_call_arguments.done": "ResponseFunctionCallArgumentsDone",
	}
	in, out := 3, 4
	for _, a := range []script.Answer{
		{Reply: llm.Reply{Reasoning: "hm", Text: "a", Refusal: "no", ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Input: json.RawMessage(`{"a":1}`)}}, Usage: llm.Usage{InputTokens: &in, OutputTokens: &out}}},
		{Reply: llm.Reply{StopReason: "max_output_tokens"}},
		{Err: &llm.ProviderError{Message: "m", Type: "t", Code: "c"}},
	} {
		w := httptest.NewRecorder()
		script.New(a).ServeHTTP(w, httptest.NewRequest("POST", "/v1/responses", strings.NewReader(`{"model":"m","input":[]}`)))
		for line := range strings.Lines(w.Body.String()) {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var e struct{ Type string }
			if err := json.Unmarshal([]byte(data), &e); err != nil || names[e.Type] == "" {
				t.Fatalf("%v: event %s", err, data)
			}
			if err := specified(t, names[e.Type]+"StreamingEvent").Validate(t.Context(), []byte(data)); err != nil {
				t.Errorf("%s: %v", data, err)
			}
		}
	}
}

// TestBackground polls a response that the server makes in the background.
func TestBackground(t *testing.T) {
	const (
		created = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"m\",\"status\":\"queued\",\"background\":true,\"output\":[]}}\n\n"
		delta   = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hel\"}\n\n"
		queued  = `{"id":"resp_1","object":"response","model":"m","status":"queued","background":true,"output":[]}`
		running = `{"id":"resp_1","object":"response","model":"m","status":"in_progress","background":true,"output":[]}`
		done    = `{"id":"resp_1","object":"response","model":"m","status":"completed","background":true,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello"}]}]}`
		failed  = `{"id":"resp_1","object":"response","model":"m","status":"failed","background":true,"error":{"code":"server_error","message":"out of order"},"output":[]}`
	)
	for _, c := range []struct {
		name    string
		answers []string // of an event stream if they begin with "event", a status if with a digit
		text    string
		err     string
		waited  time.Duration
	}{
		{name: "polled", answers: []string{queued, running, done}, text: "Hello", waited: 4 * time.Second},
		{name: "a poll fails, and the next does not", answers: []string{queued, "503", done}, text: "Hello", waited: 3 * time.Second},
		{name: "it fails", answers: []string{queued, failed}, err: "llm: the provider reports: out of order (server_error, request req_1)", waited: 2 * time.Second},
		{name: "it is gone", answers: []string{queued, "404"}, err: "llm: HTTP status 404", waited: 2 * time.Second},
		{name: "cut off", answers: []string{created + delta, running, done}, text: "Hello", waited: 4 * time.Second},
		{name: "never done", answers: []string{queued, running}, err: "llm: timeout: total took longer than 30m0s", waited: 30 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					want := "POST http://test.invalid/v1/responses?v=1"
					if n > 0 {
						want = "GET http://test.invalid/v1/responses/resp_1?v=1"
					}
					if got := r.Method + " " + r.URL.String(); got != want || r.Header.Get("Authorization") != "Bearer k" {
						t.Errorf("request %d is %s with %q, want %s", n, got, r.Header.Get("Authorization"), want)
					}
					a := c.answers[min(n, len(c.answers)-1)]
					n++
					resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}}, Request: r}
					switch {
					case strings.HasPrefix(a, "event"):
						resp.Header.Set("Content-Type", "text/event-stream")
					case a[0] >= '0' && a[0] <= '9':
						resp.StatusCode = int(a[0]-'0')*100 + int(a[2]-'0')
						resp.Header.Set("Retry-After", "1")
					}
					resp.Body = io.NopCloser(strings.NewReader(a))
					return resp, nil
				})}
				m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid?v=1", Key: "k", Protocol: openai.Responses, HTTPClient: client, Extra: map[string]any{"background": true, "store": true}})
				begin := time.Now()
				var text string
				var starts int
				var reply *llm.Reply
				var err error
				for d, e := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
					switch d.Kind {
					case llm.Text:
						text += d.Text
					case llm.Start:
						starts++
					case llm.Restart:
						t.Error("restarted")
					}
					if d.Reply != nil {
						reply = d.Reply
					}
					err = e
				}
				if text != c.text || reply.Text != c.text || starts != 1 {
					t.Errorf("text %q and %q, want %q; %d starts", text, reply.Text, c.text, starts)
				}
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if waited := time.Since(begin); waited.Round(time.Second) != c.waited {
					t.Errorf("waited %s, want %s", waited, c.waited)
				}
			})
		})
	}
}

// TestResponsesErrors checks the errors of a server that are not HTTP errors.
func TestResponsesErrors(t *testing.T) {
	for _, c := range []struct {
		mediaType, body, want string
		again                 bool
	}{
		{"text/event-stream", `data: {"type":"error","code":"server_error","message":"no","param":null,"sequence_number":1}`, "llm: the provider reports: no (server_error)", true},
		{"text/event-stream", `data: {"type":"error","sequence_number":1,"error":{"type":"invalid_request_error","code":null,"message":"no","param":"x"}}`, "llm: the provider reports: no (invalid_request_error)", false},
		{"text/event-stream", "event: error\ndata: gone", "llm: the provider reports: gone", false},
		{"text/event-stream", `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}}`, "llm: the provider reports: slow down (rate_limit_exceeded)", true},
		{"text/event-stream", `data: {"type":"response.failed","response":{"error":null}}`, "llm: the provider reports: the response ended as failed (failed)", false},
		{"text/event-stream", `data: {"type":"response.created","response":{"id":"r"}}`, "llm: the stream was cut short before the answer's end", true},
		{"text/event-stream", `data: {"type":"response.completed","response":7}`, "llm: the answer breaks the protocol: a response that is not an object", false},
		{"text/event-stream", "data: <html>", "llm: the answer breaks the protocol: an event that is not an object", false},
		{"application/json", `{"error":{"message":"no","type":"t"}}`, "llm: the provider reports: no (t)", false},
		{"application/json", `{"object":"chat.completion","choices":[]}`, `llm: the answer breaks the protocol: a document of type "chat.completion" that is not a response`, false},
		{"application/json", `{"object":"response","status":"cancelled","output":[]}`, "llm: the provider reports: the response ended as cancelled (cancelled)", false},
		{"application/json", `{"object":"response","status":"queued","output":[]}`, "llm: the stream was cut short before the answer's end", true}, // nothing to ask for
	} {
		url, _ := responder(t, c.mediaType, c.body+"\n\n")
		m := openai.New(openai.Config{Model: "m", URL: url, Protocol: openai.Responses, Retry: llm.Retry{Max: -1}})
		_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || llm.Retryable(err) != c.again {
			t.Errorf("%s\n got %v (again %v)\nwant %s (%v)", c.body, err, llm.Retryable(err), c.want, c.again)
		}
	}
}

// TestResponsesRefusesAudio checks that media without a place in the protocol is not dropped.
func TestResponsesRefusesAudio(t *testing.T) {
	m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", Protocol: openai.Responses})
	_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("a"), {Role: llm.RoleUser, Content: []llm.Part{{Media: &llm.Media{Type: "audio/wav", Data: []byte("wav")}}}}}})
	want := `openai: message 1: media of type "audio/wav": Responses takes images and documents; Chat Completions also takes audio`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
	if errors.Unwrap(err) == nil {
		t.Error("the error wraps nothing")
	}
}
