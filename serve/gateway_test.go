package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve"
)

var (
	question = dag.NewType[string]("question")
	talked   = dag.NewType[[]llm.Message]("talked")
	said     = dag.NewType[agent.Text]("said")
	numbers  = dag.NewType[servetest.Doc]("numbers")
)

// gatewayServer is a server with a pipeline of each form, and an intent with a gate.
func gatewayServer(t *testing.T, app *call.Applicator, access serve.Access, live ...string) *house {
	return gatewayServerOf(t, serve.Config{Applicator: app, Access: access, Live: live})
}

func gatewayServerOf(t *testing.T, cfg serve.Config) *house {
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	upper := stone.Func("upper", question, page, func(_ context.Context, q string) (string, error) {
		if q == "bad" {
			return "", stone.Fail("refused", "I do not answer that")
		}
		return strings.ToUpper(q), nil
	})
	slow := stone.Func("slow", question, page, func(ctx context.Context, q string) (string, error) {
		select {
		case <-h.Gate:
			return "slow " + q, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	count := stone.Func2("count", talked, question, page, func(_ context.Context, before []llm.Message, q string) (string, error) {
		return fmt.Sprintf("%d before %s", len(before), q), nil
	})
	chat := agent.New("chat", said, script.Func(func(_ int, req *llm.Request) script.Answer {
		return script.Text(fmt.Sprintf("%d messages, the last is %q", len(req.Messages), req.Messages[len(req.Messages)-1].Text()))
	}), agent.Config{Conversation: agent.ConversationOf(said), User: agent.Prompt(question, func(q string) string { return q })})
	object := stone.Func("object", order, numbers, func(_ context.Context, o servetest.Doc) (servetest.Doc, error) { return o, nil })
	asks := stone.Ask("asks", question, approval, func(q string) string { return q }, stone.Choices("yes", "no"))
	cfg.Journal, cfg.Pipelines = h.journal, []serve.Pipeline{
		{Name: "upper", Ashlar: upper}, {Name: "slow", Ashlar: slow}, {Name: "count", Ashlar: count},
		{Name: "chat", Ashlar: chat}, {Name: "object", Ashlar: object}, {Name: "asks", Ashlar: asks},
	}
	h.Server = serveAll(t, cfg, func(s http.Handler) http.Handler { return conforming(t, s) })
	return h
}

var sumSchema, _ = schema.Parse([]byte(`{"type":"object","required":["of"],"properties":{"of":{"type":"array","items":{"type":"number"}}}}`))

// plain is a capability that answers with its input.
func plain(intent string) call.Capability {
	return call.Func(call.Metadata{ID: "go/" + strings.ReplaceAll(intent, "/", "-"), Intents: []string{intent}}, func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
}

// gated is an Applicator of two scripted models, the first of which answers badly.
func gated(weak, strong llm.Model) *call.Applicator {
	return &call.Applicator{
		Registry: call.NewRegistry(
			plain("text/loud"), plain("text/sum"),
			model.New(call.Metadata{ID: "model/net", Intents: []string{"chat/net"}, Needs: []string{"net"}}, model.Config{Model: strong}),
			model.New(call.Metadata{ID: "model/weak", Intents: []string{"chat/answer"}}, model.Config{Model: weak}),
			model.New(call.Metadata{ID: "model/strong", Intents: []string{"chat/answer"}}, model.Config{Model: strong}),
		),
		Intents: map[string]call.Intent{"chat/answer": {}, "chat/net": {}, "text/loud": {In: terms.TextRequest}, "text/sum": {In: "sum"}},
		Schemas: map[string]*schema.Schema{"sum": sumSchema},
		Checks: map[string]call.Check{"polite": func(_ context.Context, s call.Subject) error {
			if bytes.Contains(s.Out, []byte("whatever")) {
				return errors.New("not polite")
			}
			return nil
		}},
		Policy: call.Policy{Default: call.Rules{Done: call.Done{Must: []string{"polite"}}}},
	}
}

// events sends a request and returns the data of the events.
func (h *house) streamed(method, path, body string) (all []json.RawMessage) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, json.RawMessage(data))
		}
	}
	if resp.StatusCode != 200 || len(all) == 0 {
		text, _ := io.ReadAll(resp.Body)
		h.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return all
}

// Every body and event is valid against the specification.
func TestResponses(t *testing.T) {
	turn := llm.Reply{Text: "I look.", ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "look", Input: json.RawMessage(`{"at":"it"}`)}}}
	strong := script.Func(func(_ int, req *llm.Request) script.Answer {
		if len(req.Tools) == 1 && req.Messages[len(req.Messages)-1].Role != llm.RoleTool {
			return script.Answer{Reply: turn}
		}
		return script.Text(fmt.Sprintf("polite: %d messages, %s", len(req.Messages), req.System))
	})
	h := gatewayServer(t, gated(script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") }), strong), nil)
	for _, tt := range []struct{ body, want string }{
		{`{"model":"stone/upper","input":"marble"}`, "MARBLE"},
		{`{"model":"stone/upper","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"marble"}]}],"metadata":{"k":"v"},"temperature":0.5}`, "MARBLE"},
		{`{"model":"stone/upper","instructions":"Be loud.","input":"marble"}`, "SYSTEM:\nBE LOUD.\n\nUSER:\nMARBLE"},
		{`{"model":"stone/count","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, "2 before c"},
		{`{"model":"stone/chat","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, `3 messages, the last is "c"`},
		{`{"model":"stone/chat","input":"c"}`, `1 messages, the last is "c"`},
		{`{"model":"stone/object","input":"{\"text\":\"x\"}"}`, `x`},
		{`{"model":"stone/text/loud","input":"c"}`, `c`},
		{`{"model":"stone/text/sum","input":"{\"of\":[1,2]}"}`, `{"of":[1,2]}`},
		{`{"model":"stone/chat/answer","instructions":"Hi","input":"c","reasoning":null,"text":{"verbosity":"low"}}`, `polite: 1 messages, Hi`},
		{`{"model":"stone/chat/answer","input":[{"role":"user","content":"c"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"seen"}],
		  "tools":[{"type":"function","name":"look","parameters":{"type":"object"},"strict":false}]}`, `polite: 3 messages, `},
	} {
		text := h.want("POST", "/v1/responses", tt.body, 200, `"status":"completed"`)
		if got := outputText(t, text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.body, got, tt.want)
		}
		streamed := h.streamed("POST", "/v1/responses", strings.Replace(tt.body, "{", `{"stream":true,`, 1))
		for i, e := range streamed {
			var event struct {
				Type     string          `json:"type"`
				Number   int             `json:"sequence_number"`
				Response json.RawMessage `json:"response"`
			}
			if err := json.Unmarshal(e, &event); err != nil || event.Number != i {
				t.Errorf("event %d: %v: %s", i, err, e)
			}
			if last := i == len(streamed)-1; last && (event.Type != "response.completed" || outputText(t, string(event.Response)) != tt.want) {
				t.Errorf("%s: the last event is %s", tt.body, e)
			}
		}
	}
	// Tools of the client are called by the client.
	body := `{"model":"stone/chat/answer","input":"c","tool_choice":"auto","tools":[{"type":"function","name":"look","description":"looks","parameters":{"type":"object"},"strict":true}]}`
	h.want("POST", "/v1/responses", body, 200, `"call_id":"call_1","name":"look","arguments":"{\"at\":\"it\"}"`)
	if all := fmt.Sprintf("%s", h.streamed("POST", "/v1/responses", strings.Replace(body, "{", `{"stream":true,`, 1))); !strings.Contains(all, `"type":"response.function_call_arguments.done"`) {
		t.Errorf("the stream has no call: %s", all)
	}
}

// Answers that are incomplete, refused or in the client's own form, and failures, are valid too.
func TestResponsesOfOtherKinds(t *testing.T) {
	strong := script.Func(func(_ int, req *llm.Request) script.Answer {
		switch said := req.Messages[len(req.Messages)-1].Text(); {
		case said == "long":
			return script.Answer{Reply: llm.Reply{Text: "polite but", StopReason: "max_output_tokens"}}
		case said == "refuse":
			return script.Answer{Reply: llm.Reply{Refusal: "I do not do that"}}
		case req.ResponseFormat != nil:
			return script.Text(fmt.Sprintf("{%q:%s}", req.ResponseFormat.Name, req.ResponseFormat.Schema))
		default:
			return script.Text("whatever")
		}
	})
	h := gatewayServer(t, gated(strong, strong), nil)
	for _, tt := range []struct{ body, last, part string }{
		{`{"model":"stone/chat/answer","input":"long"}`, "response.incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`},
		{`{"model":"stone/chat/answer","input":"refuse"}`, "response.completed", `{"type":"refusal","refusal":"I do not do that"}`},
		{`{"model":"stone/chat/answer","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}}}`, "response.completed", `"text":"{\"n\":{\"type\":\"object\"}}"`},
		{`{"model":"stone/chat/answer","input":"x","text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low"},"tool_choice":"none","max_output_tokens":99,"metadata":{"a":"b"}}`, "response.completed", `"metadata":{"a":"b"}`},
		{`{"model":"stone/chat/answer","input":"x"}`, "response.failed", `"error":{"code":"invalid_prompt","message":"eval/must-failed: polite: not polite"`},
		{`{"model":"stone/upper","input":"bad"}`, "response.failed", `"error":{"code":"invalid_prompt","message":"refused: I do not answer that"`},
		{`{"model":"stone/asks","input":"x"}`, "response.failed", `"error":{"code":"invalid_prompt","message":"waiting: `},
	} {
		all := h.streamed("POST", "/v1/responses", strings.Replace(tt.body, "{", `{"stream":true,`, 1))
		var event struct {
			Type     string
			Response json.RawMessage
		}
		for _, e := range all {
			if err := json.Unmarshal(e, &event); err != nil {
				t.Fatal(err)
			}
		}
		if last := string(all[len(all)-1]); event.Type != tt.last || !strings.Contains(last, tt.part) {
			t.Errorf("%s: the last event is %s, want %s with %s", tt.body, last, tt.last, tt.part)
		}
		if status, text := h.do("POST", "/v1/responses", tt.body); status == 200 {
		} else if tt.last != "response.failed" {
			t.Errorf("%s: %d %s", tt.body, status, text)
		}
	}
}

// outputText returns the text of a response.
func outputText(t *testing.T, body string) string {
	t.Helper()
	var r struct {
		Output []struct {
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Output) == 0 || len(r.Output[0].Content) == 0 {
		return ""
	}
	return r.Output[0].Content[0].Text
}

// A response in the background is a run: it can be looked at, followed from any event,
// cancelled and removed.
func TestResponseInBackground(t *testing.T) {
	h := gatewayServer(t, nil, nil)
	id := func(text string) string {
		t.Helper()
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	body := `{"model":"stone/slow","input":"x","background":true}`
	first := id(h.want("POST", "/v1/responses", body, 200, `"status":"in_progress"`))
	h.want("GET", "/v1/runs/"+first, "", 200, `"state":"running"`)
	id(h.want("GET", "/v1/responses/"+first, "", 200, `"status":"in_progress"`))
	id(h.want("POST", "/v1/responses/"+first+"/cancel", "", 200, `"status":"cancelled"`))
	id(h.want("POST", "/v1/responses/"+first+"/cancel", "", 200, `"status":"cancelled"`))
	if all := h.streamed("GET", "/v1/responses/"+first+"?stream=true", ""); !strings.Contains(string(all[len(all)-1]), `"message":"canceled: the run was canceled"`) {
		t.Errorf("the stream of a cancelled response ends with %s", all[len(all)-1])
	}

	second := id(h.want("POST", "/v1/responses", body, 200, `"status":"in_progress"`))
	close(h.Gate)
	all := h.streamed("GET", "/v1/responses/"+second+"?stream=true", "")
	for i := range all {
		rest := all[i+1:]
		if len(rest) == 0 {
			break
		}
		got := h.streamed("GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", second, i), "")
		if fmt.Sprintf("%s", got) != fmt.Sprintf("%s", rest) {
			t.Errorf("after %d: %s, want %s", i, got, rest)
		}
	}
	if got := outputText(t, h.want("GET", "/v1/responses/"+second, "", 200, `"status":"completed"`)); got != "slow x" {
		t.Errorf("the text is %q", got)
	}
	h.want("GET", "/v1/responses/"+second+"?stream=true&starting_after=x", "", 400, `"param":"starting_after"`)
	h.want("DELETE", "/v1/responses/"+second, "", 200, `"deleted":true`)
	h.want("GET", "/v1/responses/"+second, "", 404, `"error"`)

	// The same request again is answered with what the run has come to.
	for _, want := range []string{`"status"`, `"text":"X"`} {
		_, text := h.do("POST", "/v1/responses", `{"model":"stone/upper","input":"x","background":true}`, "Idempotency-Key", "again")
		if !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
		h.streamed("GET", "/v1/responses/"+id(text)+"?stream=true", "") // until it is done
	}

	// What is not stored is a run, but no response that can be asked for.
	third := id(h.want("POST", "/v1/responses", `{"model":"stone/upper","input":"x","store":false}`, 200, `"store":false`))
	h.want("GET", "/v1/responses/"+third, "", 404, `"code":"not_found"`)
	h.want("GET", "/v1/runs/"+third, "", 200, `"state":"done"`)
}

// A response continues the conversation of an earlier one, where the model is given one.
func TestPreviousResponse(t *testing.T) {
	strong := script.Func(func(_ int, req *llm.Request) script.Answer {
		var all []string
		for _, m := range req.Messages {
			all = append(all, string(m.Role)+" "+m.Text())
		}
		return script.Text(req.System + "[" + strings.Join(all, ", ") + "]")
	})
	h := gatewayServer(t, gated(strong, strong), nil)
	for model, want := range map[string]string{
		"stone/chat/answer": "[user a, assistant Be.[user a], user b]",
		"stone/count":       "3 before b", // with the instructions
		"stone/chat":        `4 messages, the last is "b"`,
	} {
		var first struct{ ID string }
		if err := json.Unmarshal([]byte(h.want("POST", "/v1/responses", `{"model":"`+model+`","input":"a","instructions":"Be."}`, 200, `"status":"completed"`)), &first); err != nil {
			t.Fatal(err)
		}
		text := h.want("POST", "/v1/responses", `{"model":"`+model+`","input":"b","previous_response_id":"`+first.ID+`"}`, 200, `"previous_response_id":"`+first.ID+`"`)
		if got := outputText(t, text); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
	var plain struct{ ID string }
	if err := json.Unmarshal([]byte(h.want("POST", "/v1/responses", `{"model":"stone/upper","input":"a"}`, 200, "")), &plain); err != nil {
		t.Fatal(err)
	}
	h.want("POST", "/v1/responses", `{"model":"stone/upper","input":"b","previous_response_id":"`+plain.ID+`"}`, 400, "is given no conversation")
}

// until waits until the reply to a GET has the part.
func (h *house) until(path, part string) {
	h.Helper()
	for text := ""; !strings.Contains(text, part); _, text = h.do("GET", path, "") {
		if h.Context().Err() != nil {
			h.Fatalf("%s: %s, want %s", path, text, part)
		}
		time.Sleep(time.Millisecond)
	}
}

// A client that goes cancels its run; one with a key finds the run of its first request.
func TestResponseOfClientThatGoes(t *testing.T) {
	h := gatewayServer(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/v1/responses", strings.NewReader(`{"model":"stone/slow","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	h.until("/v1/runs?pipeline=slow", `"state":"canceled"`)
	var bodies []string
	for range 2 {
		_, text := h.do("POST", "/v1/responses", `{"model":"stone/upper","input":"x"}`, "Idempotency-Key", "k")
		bodies = append(bodies, text)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("two responses for one key: %s and %s", bodies[0], bodies[1])
	}
	if status, text := h.do("POST", "/v1/responses", `{"model":"stone/upper","input":"y"}`, "Idempotency-Key", "k"); status != 409 {
		t.Errorf("another request with the key: %d %s", status, text)
	}
}

// Errors have the form of OpenAI, whoever finds them.
func TestGatewayErrors(t *testing.T) {
	weak := func() llm.Model {
		return script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") })
	}
	h := gatewayServer(t, gated(weak(), weak()), nil)
	for _, tt := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/v1/responses", `x`, 400, "invalid_json"},
		{"/v1/responses", `[]`, 400, "invalid_json"},
		{"/v1/responses", `{"model":"gpt-5","input":"x"}`, 404, "model_not_found"},
		{"/v1/responses", `{"model":"upper","input":"x"}`, 404, "model_not_found"},
		{"/v1/responses", `{"model":"stone/upper"}`, 400, "invalid_type"},
		{"/v1/responses", `{"model":"stone/upper","input":[]}`, 400, "missing_required_parameter"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","colour":1}`, 400, "unknown_parameter"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","messages":[]}`, 400, "unknown_parameter"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","previous_response_id":"resp_1"}`, 404, "not-found"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","temperature":"hot"}`, 400, "invalid_type"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","tools":[{"type":"function","name":"f"}]}`, 400, "unsupported_parameter"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","text":{"format":{"type":"json_object"}}}`, 400, "unsupported_parameter"},
		{"/v1/responses", `{"model":"stone/upper","input":[{"type":"item_reference","id":"x"}]}`, 404, "not_found"},
		{"/v1/responses", `{"model":"stone/upper","input":[{"role":"judge","content":"x"}]}`, 400, "invalid_value"},
		{"/v1/responses", `{"model":"stone/upper","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}`, 400, "unsupported_content"},
		{"/v1/responses", `{"model":"stone/upper","input":"x","background":true,"store":false}`, 400, "invalid_value"},
		{"/v1/responses", `{"model":"stone/object","input":"x"}`, 400, "invalid_input"},
		{"/v1/responses", `{"model":"stone/object","input":"{\"text\":1}"}`, 422, "invalid"},
		{"/v1/responses", `{"model":"stone/upper","input":"bad"}`, 422, "refused"},
		{"/v1/responses", `{"model":"stone/asks","input":"x"}`, 422, "waiting"},
		{"/v1/responses", `{"model":"stone/chat/answer","input":"x"}`, 422, reasons.MustFailed},
		{"/v1/responses", `{"model":"stone/text/sum","input":"{}"}`, 400, reasons.InputInvalid},
		{"/v1/responses", `{"model":"stone/chat/net","input":"x"}`, 422, "invalid"}, // the effect is not granted
		{"/v1/chat/completions", `{"model":"stone/upper","messages":[{"role":"user","content":"bad"}]}`, 422, "refused"},
		{"/v1/chat/completions", `{"model":"stone/upper","messages":[{"role":"user","content":"x"}],"n":2}`, 400, "unsupported_parameter"},
		{"/v1/chat/completions", `{"model":"stone/upper","messages":[{"role":"user","content":"x"}],"input":"x"}`, 400, "unknown_parameter"},
		{"/v1/chat/completions", `{"model":"stone/upper","messages":[]}`, 400, "missing_required_parameter"},
		{"/v1/responses/resp_1/nothing", `{}`, 404, "no-such-path"},
	} {
		status, text := h.do("POST", tt.path, tt.body)
		var body struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil || status != tt.status || body.Error.Code != tt.code || body.Error.Message == "" || body.Error.Type == "" {
			t.Errorf("%s: %d %s, want %d with the code %s", tt.body, status, text, tt.status, tt.code)
		}
	}
	if status, text := h.do("GET", "/v1/models", "", "Host", "x"); status != 200 || !strings.Contains(text, `"id":"stone/chat/answer"`) {
		t.Errorf("%d %s", status, text)
	}
	h.want("GET", "/v1/models/stone/upper", "", 200, `"id":"stone/upper"`)
	h.want("GET", "/v1/models/stone%2Fchat%2Fanswer", "", 200, `"id":"stone/chat/answer"`)
	h.want("GET", "/v1/models/gpt-5", "", 404, `"code":"model_not_found"`)
}

// A tenant sees no responses of others, and an intent needs the role act.
func TestGatewayCallers(t *testing.T) {
	weak := script.Func(func(int, *llm.Request) script.Answer { return script.Text("polite") })
	h := gatewayServer(t, gated(weak, weak), tenants{})
	body := `{"model":"stone/upper","input":"x"}`
	_, text := h.do("POST", "/v1/responses", body, "X-Tenant", "acme")
	var r struct{ ID string }
	if err := json.Unmarshal([]byte(text), &r); err != nil || !strings.HasPrefix(r.ID, "resp_") {
		t.Fatalf("%v: %s", err, text)
	}
	for _, tt := range []struct {
		method, path, body, tenant string
		status                     int
	}{
		{"POST", "/v1/responses", body, "", 401},
		{"GET", "/v1/responses/" + r.ID, "", "acme", 200},
		{"GET", "/v1/responses/" + r.ID, "", "other", 404},
		{"GET", "/v1/responses/" + r.ID + "?stream=true", "", "other", 404},
		{"POST", "/v1/responses/" + r.ID + "/cancel", "", "other", 404},
		{"DELETE", "/v1/responses/" + r.ID, "", "other", 404},
		{"POST", "/v1/responses", body, "reader", 403},
		{"POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x"}`, "reader", 404},
	} {
		status, text := h.do(tt.method, tt.path, tt.body, "X-Tenant", tt.tenant)
		if status != tt.status || status > 200 && !strings.HasPrefix(text, `{"error":{`) {
			t.Errorf("%+v: %d %s", tt, status, text)
		}
	}
}

func TestChatCompletions(t *testing.T) {
	asked := 0
	weak := script.Func(func(int, *llm.Request) script.Answer { asked++; return script.Text("whatever") })
	strong := script.Func(func(_ int, req *llm.Request) script.Answer {
		if len(req.Tools) == 1 {
			return script.Answer{Reply: llm.Reply{ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "look", Input: json.RawMessage(`{}`)}}}}
		}
		return script.Text("polite " + req.System + fmt.Sprint(req.MaxTokens, req.Params.Stop))
	})
	h := gatewayServer(t, gated(weak, strong), nil)
	body := `{"model":"stone/chat/answer","max_tokens":5,"max_completion_tokens":7,"stop":"x","messages":[{"role":"system","content":"S"},{"role":"user","content":"x"}]}`
	text := h.want("POST", "/v1/chat/completions", body, 200, `"content":"polite S7 [x]"`)
	if !strings.Contains(text, `"finish_reason":"stop"`) || !strings.Contains(text, `"usage":{"prompt_tokens":`) {
		t.Error(text)
	}
	if asked == 0 {
		t.Error("the weak model was not asked first: the gate had nothing to reject")
	}
	h.want("POST", "/v1/chat/completions", strings.Replace(body, "{", `{"tools":[{"type":"function","function":{"name":"look"}}],`, 1), 200, `"finish_reason":"tool_calls"`)
	all := h.streamed("POST", "/v1/chat/completions", strings.Replace(body, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1))
	got := fmt.Sprintf("%s", all)
	for _, part := range []string{`"delta":{"role":"assistant"`, `"content":"polite S7 [x]"`, `"finish_reason":"stop"`, `"choices":[],"usage":{`, "[DONE]]"} {
		if !strings.Contains(got, part) {
			t.Errorf("the stream lacks %s: %s", part, got)
		}
	}
	if strings.Contains(got, "whatever") {
		t.Errorf("the stream has what the gate rejected: %s", got)
	}
}
