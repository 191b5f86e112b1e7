package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
)

// carver answers clients of Anthropic by what they say. Its calls have reasoning that it wants back.
func carver() *script.Model {
	return script.Func(func(_ int, req *llm.Request) script.Answer {
		last := req.Messages[len(req.Messages)-1]
		before := req.Messages[max(len(req.Messages)-2, 0)]
		switch said := last.Text(); {
		case req.ResponseFormat != nil:
			return script.Text(`{"town":"Paris"}`)
		case before.Role == llm.RoleTool || last.Role == llm.RoleTool:
			results, signed := 0, ""
			for _, m := range req.Messages {
				if m.Role == llm.RoleTool {
					results += len(m.Content)
				}
				if m.Role == llm.RoleAssistant {
					signed = string(m.Metadata["script/signature"])
				}
			}
			return script.Text(fmt.Sprintf("polite: %d parts, error %v, signed %s", results, before.IsError, signed))
		case len(req.Tools) > 0 && req.Tools[0].Name == "json": // by which the AI SDK asks for an object
			return script.Calls(llm.ToolCall{ID: "call_1", Name: "json", Input: []byte(`{"town":"Paris"}`)})
		case len(req.Tools) > 0:
			return script.Answer{Reply: llm.Reply{Reasoning: "I must look.", Text: "I look.", Metadata: map[string]json.RawMessage{"script/signature": []byte(`"s"`)},
				ToolCalls: []llm.ToolCall{{ID: "call_1", Name: req.Tools[0].Name, Input: []byte(`{"at":"it"}`)}}}}
		case said == "cached":
			return script.Answer{Reply: llm.Reply{Text: "polite", Usage: llm.Usage{InputTokens: new(100), OutputTokens: new(7), CachedInputTokens: 60, CacheWriteTokens: 30}}}
		case said == "long":
			return script.Answer{Reply: llm.Reply{Text: "polite but", StopReason: "length"}}
		case said == "refuse":
			return script.Answer{Reply: llm.Reply{Refusal: "I do not do that"}}
		case said == "impolite":
			return script.Text("whatever")
		case said == "system?":
			return script.Text("polite: " + req.System)
		default:
			var types []string
			for _, m := range last.Media() {
				types = append(types, m.Type)
			}
			return script.Text("polite: " + strings.Join(types, " ") + " " + said)
		}
	})
}

// Anthropic's clients get what the gate has accepted.
func TestMessagesClients(t *testing.T) {
	weak := says("whatever")
	h := gatewayServer(t, gated(weak, carver()), nil)
	got := runModule(t, "testdata/messages.mjs", h.URL, "@anthropic-ai/sdk", "@ai-sdk/anthropic", "ai7")
	for _, name := range []string{"@anthropic-ai/sdk", "@ai-sdk/anthropic"} {
		peer.Held(t, name, "answers", "streams", "tools", "pictures", "thinking", "counts of tokens")
	}
	want := `models: [true,"model"]
model: "chat/answer"
message: ["text MARBLE","end_turn","message","assistant","stone/upper",true]
usage: {"input_tokens":12,"cache_creation_input_tokens":30,"cache_read_input_tokens":60,"output_tokens":9}
events: ["message_start","content_block_start","content_block_delta","content_block_stop","message_delta","message_stop"]
stream: ["text CHALK","CHALK"]
system: "text polite: Be\n\nbrief."
media: "text polite: image/png image/png application/pdf of textmedia?"
tools: ["thinking I must look., text I look., tool_use look","tool_use",{"at":"it"}]
result: "text polite: 2 parts, error true, signed \"s\""
tools: ["thinking I must look., text I look., tool_use look","tool_use",{"at":"it"}]
result: "text polite: 2 parts, error true, signed \"s\""
runner: "text polite: 1 parts, error false, signed \"s\""
cut: "max_tokens"
refusal: "refusal"
format: "text {\"town\":\"Paris\"}"
count: 5
error unknown: ["NotFoundError",404,"not_found_error","there is no model \"claude\": GET /v1/models lists them","req_"]
error refused: ["APIError",424,"invalid_request_error","eval/must-failed: polite: not polite","msg_"]
error stream: ["APIError",424,"invalid_request_error","eval/must-failed: polite: not polite","msg_"]
error parameter: ["BadRequestError",400,"invalid_request_error","container: the parameter is not supported: leave it out","req_"]
error tool: ["BadRequestError",400,"invalid_request_error","tools.0: tools of the type \"web_search_20250305\" are not supported; :serve {:ignore-tools #{…}} of the server's configuration leaves types out","req_"]
error role: ["BadRequestError",400,"invalid_request_error","messages.0: the role is \"tool\": want user, assistant or system","req_"]
ai: "MARBLE"
ai stream: ["SLATE",0,"stop"]
ai tools: ["polite: 1 parts, error false, signed \"s\"",2,"I must look."]
ai stream tools: ["polite: 1 parts, error false, signed \"s\"",2]
ai object: {"town":"Paris"}
ai refused: [424,false,"eval/must-failed: polite: not polite"]
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

const marble = `{"model":"stone/upper","max_tokens":9,"messages":[{"role":"user","content":"marble"}]}`

// Errors have the form of the client's protocol, whoever makes them.
func TestMessagesErrors(t *testing.T) {
	h := gatewayServer(t, gated(says("polite"), says("polite")), named{})
	long := strings.Replace(marble, "marble", strings.Repeat("x", 9<<20), 1)
	key, version := []string{"X-Api-Key", "ada"}, []string{"Anthropic-Version", "2023-06-01"}
	for _, tt := range []struct {
		method, path, body string
		header             []string
		status             int
		kind               string
	}{
		{"POST", "/v1/messages", marble, nil, 401, "authentication_error"},
		{"POST", "/v1/messages", marble, key, 200, ""},
		{"POST", "/v1/messages", marble, []string{"Authorization", "Bearer ada"}, 200, ""},
		{"POST", "/v1/messages/count_tokens", marble, nil, 401, "authentication_error"},
		{"POST", "/v1/messages/count_tokens", marble, key, 200, ""},
		{"GET", "/v1/messages", "", key, 405, "invalid_request_error"},
		{"POST", "/v1/messages/batches", "{}", key, 404, "not_found_error"},
		{"POST", "/v1/files", "{}", append(version, key...), 404, "not_found_error"},
		{"POST", "/v1/messages", long, key, 413, "request_too_large"},
		{"POST", "/v1/messages", "no", key, 400, "invalid_request_error"},
		{"POST", "/v1/messages", marble, append([]string{"Content-Type", "text/plain"}, key...), 415, "invalid_request_error"},
		{"POST", "/v1/messages", marble, append([]string{"Origin", "https://a.example"}, key...), 403, "permission_error"},
		{"GET", "/v1/models", "", append(version, key...), 200, ""},
		{"GET", "/v1/models/claude", "", append(version, key...), 404, "not_found_error"},
		{"GET", "/v1/models", "", key, 401, "authentication_error"}, // no client of Anthropic: a key is no token
		{"GET", "/v1/runs", "", key, 401, ""},
	} {
		status, text := h.do(tt.method, tt.path, tt.body, tt.header...)
		var e struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
			Error     struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != tt.status || tt.kind != "" && e.Error.Type != tt.kind {
			t.Errorf("%s %s %q: %d %.300s", tt.method, tt.path, tt.header, status, text)
		}
		if foreign := len(tt.header) == 2 && tt.method == "GET"; tt.kind != "" && !foreign && (e.Type != "error" || e.RequestID == "" || e.Error.Message == "") {
			t.Errorf("%s %s: %.300s", tt.method, tt.path, text)
		}
	}
}

// A caller reaches what its roles, limits and tenant allow, as in the other protocols.
func TestMessagesAccess(t *testing.T) {
	none := 1
	who := map[string]serve.Principal{
		"reader": {Name: "reader", Roles: []serve.Role{serve.Read}}, "starter": {Name: "starter", Roles: []serve.Role{serve.Start}},
		"actor": {Name: "actor", Roles: []serve.Role{serve.Act}}, "slow": {Name: "slow", PerMinute: &none}, "poor": {Name: "poor", Limits: budget.Limits{Tokens: new(0)}},
		"acme": {Name: "acme", Tenant: "acme"}, "globex": {Name: "globex", Tenant: "globex"},
	}
	signed := carver()
	h := gatewayServer(t, gated(signed, signed), principals(who))
	ask := func(name, model, content string) (int, string) {
		return h.do("POST", "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":%q}]}`, "stone/"+model, content), "X-Api-Key", name)
	}
	for _, tt := range []struct {
		who, model string
		status     int
		part       string
	}{
		{"reader", "upper", 403, "permission_error"}, {"starter", "upper", 200, "X"}, {"starter", "chat/answer", 404, "not_found_error"}, {"actor", "chat/answer", 200, "polite"},
		{"actor", "upper", 403, "permission_error"}, {"slow", "upper", 200, "X"}, {"slow", "upper", 429, "rate_limit_error"}, {"poor", "chat/answer", 402, "billing_error"},
	} {
		if status, text := ask(tt.who, tt.model, "x"); status != tt.status || !strings.Contains(text, tt.part) {
			t.Errorf("%s asks %s: %d %s", tt.who, tt.model, status, text)
		}
	}
	// What a provider wants back is given to the tenant of the run alone.
	tools := `"tools":[{"name":"look","input_schema":{"type":"object"}}]`
	_, text := h.do("POST", "/v1/messages", `{"model":"stone/chat/answer","max_tokens":9,"messages":[{"role":"user","content":"x"}],`+tools+`}`, "X-Api-Key", "acme")
	var called struct{ Content json.RawMessage }
	if err := json.Unmarshal([]byte(text), &called); err != nil || !strings.Contains(text, "redacted_thinking") {
		t.Fatalf("%v: %s", err, text)
	}
	again := fmt.Sprintf(`{"model":"stone/chat/answer","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1"}]}],%s}`, called.Content, tools)
	for tenant, want := range map[string]string{"acme": `signed \"s\"`, "globex": `signed "`} {
		if status, text := h.do("POST", "/v1/messages", again, "X-Api-Key", tenant); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s sends the turn back: %d %s", tenant, status, text)
		}
	}
}

type principals map[string]serve.Principal

func (p principals) Principal(r *http.Request) (serve.Principal, error) {
	who, ok := p[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok {
		return who, errors.New("who are you?")
	}
	return who, nil
}

// What is wrong is said where it is, and reaches no model.
func TestMessagesHostile(t *testing.T) {
	model := says("polite")
	h := gatewayServer(t, gated(model, model), nil)
	with := func(more string) string {
		return `{"model":"stone/chat/answer","messages":[{"role":"user","content":"x"}],` + more + `}`
	}
	says := func(block string) string {
		return `{"model":"stone/chat/answer","messages":[{"role":"user","content":[` + block + `]}]}`
	}
	for _, tt := range []struct{ body, part string }{
		{`{} {}`, "not a JSON object"},
		{`{"model":"stone/chat/answer"}`, "messages: the conversation has no message"},
		{`{"model":"stone/chat/answer","messages":[{"role":"user","content":7}]}`, "messages"},
		{with(`"metadata":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)), "not a JSON object"},
		{with(`"__proto__":{}`), "__proto__: the parameter is not supported"},
		{with(`"mcp_servers":[{"type":"url"}]`), "mcp_servers: the parameter is not supported"},
		{with(`"temperature":9`), "temperature"},
		{with(`"max_tokens":-1`), "want at least 1"},
		{with(`"tools":[{"name":"../x","input_schema":{}}]`), "a tool has the name"},
		{with(`"tools":[{"name":"x","input_schema":"y"}]`), "no JSON Schema"},
		{with(`"tool_choice":{"type":"maybe"}`), "want auto, any, tool or none"},
		{with(`"output_config":{"format":{"type":"json_schema","schema":{"type":"thing"}}}`), "the schema of the format"},
		{says(`{"type":"container_upload"}`), `messages.0.content.0: blocks of the type \"container_upload\" are not supported`},
		{says(`{"type":"image","source":{"type":"file","file_id":"f"}}`), `sources of the type \"file\" are not supported`},
		{says(`{"type":"image"}`), `sources of the type \"\" are not supported`},
		{says(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}`), "not base64"},
		{says(`{"type":"tool_use","id":"a","name":"b","input":{}}`), `blocks of the type \"tool_use\" are not supported`},
		{`{"model":"stone/chat/answer","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":"c"}]}]}`, "the input of a call is not an object"},
	} {
		if status, text := h.do("POST", "/v1/messages", tt.body); status != 400 || !strings.Contains(text, tt.part) || !strings.Contains(text, `"type":"invalid_request_error"`) {
			t.Errorf("%.200s: %d %s", tt.body, status, text)
		}
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("%d requests reached the model", n)
	}
}

// A live model is streamed as it writes. An answer that is then rejected ends the stream with an error.
func TestLiveMessages(t *testing.T) {
	weak := &writer{words: []string{"polite", ", ", "and slow"}}
	h := gatewayServer(t, gated(weak, weak), nil, "chat/answer")
	const body = `{"model":"stone/chat/answer","stream":true,"messages":[{"role":"user","content":"x"}]}`
	streamed := func() (text string, kinds []string) {
		for _, raw := range h.streamed("POST", "/v1/messages", body) {
			var e struct {
				Type  string
				Delta struct{ Text string }
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			if text += e.Delta.Text; len(kinds) == 0 || kinds[len(kinds)-1] != e.Type {
				kinds = append(kinds, e.Type)
			}
		}
		return text, kinds
	}
	text, kinds := streamed()
	if want := "[message_start content_block_start content_block_delta content_block_stop message_delta message_stop]"; text != "polite, and slow" || fmt.Sprint(kinds) != want {
		t.Errorf("%q in %v", text, kinds)
	}
	weak.words, weak.next = []string{"what", "ever"}, make(chan struct{})
	go func() { weak.next <- struct{}{} }()
	resp, err := http.Post(h.URL+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	last := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		if name == "content_block_delta" && last != name {
			weak.next <- struct{}{}
		}
		last = name
	}
	if last != "error" {
		t.Errorf("a rejected answer ends with %s", last)
	}
}

// A client of Anthropic that goes stops its run.
func TestMessagesGone(t *testing.T) {
	for _, stream := range []bool{false, true} {
		weak, strong := &writer{words: []string{"what", "ever"}, next: make(chan struct{})}, &writer{words: []string{"polite"}}
		h := gatewayServer(t, gated(weak, strong), nil)
		ctx, gone := context.WithCancel(t.Context())
		body := fmt.Sprintf(`{"model":"stone/chat/answer","stream":%v,"messages":[{"role":"user","content":"x"}]}`, stream)
		req, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			weak.next <- struct{}{}
			gone()
		}()
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			t.Error("an answer to a client that has gone")
		}
		h.until("/v1/runs?pipeline=chat/answer", `"state":"canceled"`)
		if strong.asked.Load() != 0 {
			t.Error("the next model was asked for nobody")
		}
	}
}
