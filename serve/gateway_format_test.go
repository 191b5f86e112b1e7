package serve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve"
)

// says is a model that answers with one text.
func says(text string) *script.Model {
	return script.Func(func(int, *llm.Request) script.Answer { return script.Text(text) })
}

const (
	townFormat = `"schema":{"type":"object","properties":{"town":{"type":"string"},"people":{"type":"integer"}},"required":["town"],"additionalProperties":false}`
	chatTown   = `{"model":"stone/chat/answer","messages":[{"role":"user","content":"Where?"}],"response_format":{"type":"json_schema","json_schema":{"name":"town","strict":true,` + townFormat + `}}}`
	answerTown = `{"model":"stone/chat/answer","input":"Where?","text":{"format":{"type":"json_schema","name":"town","strict":true,` + townFormat + `}}}`
)

// An answer that does not fit the format of the request is rejected: the next model is asked, and without one the
// request fails.
func TestResponseFormat(t *testing.T) {
	const paris = `{"town":"Paris"}`
	call := llm.Reply{ToolCalls: []llm.ToolCall{{ID: "c", Name: "look", Input: []byte(`{}`)}}}
	for _, tt := range []struct {
		name       string
		weak       llm.Model
		want       string
		asksStrong bool
	}{
		{"prose", says("In Paris."), paris, true},
		{"another object", says(`{"city":"Paris"}`), paris, true},
		{"a list", says(`["Paris"]`), paris, true},
		{"cut off", script.Func(func(int, *llm.Request) script.Answer {
			return script.Answer{Reply: llm.Reply{Text: `{"town":"Par`, StopReason: "length"}}
		}), paris, true},
		{"it fits", says(`{"town":"Lyon","people":3}`), `{"town":"Lyon","people":3}`, false},
		{"a code block", says("Here:\n```json\n{\"town\":\"Lyon\"}\n```"), `{"town":"Lyon"}`, false},
		{"null for nothing", says(`{"town":"Lyon","people":null}`), `{"town":"Lyon"}`, false},
		{"a call", script.Func(func(int, *llm.Request) script.Answer { return script.Answer{Reply: call} }), "look", false},
		{"a refusal", script.Func(func(int, *llm.Request) script.Answer {
			return script.Answer{Reply: llm.Reply{Refusal: "I do not know towns"}}
		}), "I do not know towns", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			strong := says(paris)
			h := gatewayServer(t, gated(tt.weak, strong), nil)
			for path, body := range map[string]string{"/v1/chat/completions": chatTown, "/v1/responses": answerTown} {
				quoted := strings.ReplaceAll(tt.want, `"`, `\"`)
				h.want("POST", path, body, 200, quoted)
				all := h.streamed("POST", path, strings.Replace(body, "{", `{"stream":true,`, 1))
				text := ""
				for _, e := range all {
					text += string(e)
				}
				if !strings.Contains(text, quoted) || strings.Contains(text, "In Paris") || strings.Contains(text, "city") || strings.Contains(text, "```") {
					t.Errorf("the stream of %s: %s", path, text)
				}
			}
			if asked := len(strong.Requests()) > 0; asked != tt.asksStrong {
				t.Errorf("the next model was asked: %v", asked)
			}
		})
	}
}

// A request whose format no model fits fails, as one whose format is no schema does.
func TestResponseFormatFails(t *testing.T) {
	h := gatewayServer(t, gated(says("In Paris."), says("In Lyon.")), nil, "chat/answer")
	for path, body := range map[string]string{"/v1/chat/completions": chatTown, "/v1/responses": answerTown} {
		h.want("POST", path, body, 422, `response-format: the answer is not JSON`)
		h.want("POST", path, strings.Replace(body, `"type":"object"`, `"type":"thing"`, 1), 400, "the schema of the format")
	}
	object := strings.Replace(chatTown, `{"type":"json_schema"`, `{"type":"json_object"`, 1)
	h.want("POST", "/v1/chat/completions", object, 422, "response-format: the answer is not JSON")
	// An answer that is streamed live ends as a failed one.
	all := h.streamed("POST", "/v1/responses", strings.Replace(answerTown, "{", `{"stream":true,`, 1))
	if last := string(all[len(all)-1]); !strings.Contains(last, `"type":"response.failed"`) {
		t.Errorf("the live stream ends with %s", last)
	}
}

// A pipeline that takes requests is not trusted either.
func TestResponseFormatOfPipeline(t *testing.T) {
	asked, made := dag.NewType[llm.Request]("asked"), dag.NewType[llm.Reply]("made")
	echo := stone.Func("echo", asked, made, func(_ context.Context, r llm.Request) (llm.Reply, error) {
		return llm.Reply{Text: r.Messages[0].Text()}, nil
	})
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	h.Server = serveAll(t, serve.Config{Journal: h.journal, Pipelines: []serve.Pipeline{{Name: "echo", Ashlar: echo}}})
	says := func(body, text string) string {
		return strings.Replace(strings.Replace(body, "stone/chat/answer", "stone/echo", 1), "Where?", text, 1)
	}
	for path, body := range map[string]string{"/v1/chat/completions": chatTown, "/v1/responses": answerTown} {
		h.want("POST", path, says(body, `{\"town\":\"Lyon\"}`), 200, `{\"town\":\"Lyon\"}`)
		h.want("POST", path, says(body, "prose"), 422, "the answer is not JSON")
		all := h.streamed("POST", path, strings.Replace(says(body, "prose"), "{", `{"stream":true,`, 1))
		if last := string(all[len(all)-1]); !strings.Contains(last, "the answer is not JSON") {
			t.Errorf("the stream of %s ends with %s", path, last)
		}
	}
	text := h.want("POST", "/v1/responses", strings.Replace(says(answerTown, "prose"), "{", `{"background":true,`, 1), 200, `"background":true`)
	id := text[strings.Index(text, "resp_"):]
	id = id[:strings.Index(id, `"`)]
	for strings.Contains(text, "in_progress") {
		_, text = h.do("GET", "/v1/responses/"+id, "")
	}
	if !strings.Contains(text, `"status":"failed"`) || !strings.Contains(text, "the answer is not JSON") {
		t.Errorf("in the background: %s", text)
	}
}

// An intent with an out-schema answers conversations with JSON that fits it. The first capability, which answers with text, is
// rejected.
func TestIntentWithOutSchema(t *testing.T) {
	const sorted = `{"area":"billing","sure":true}`
	app := gated(says("billing"), says(sorted))
	var err error
	if app.Schemas["sorted"], err = schema.Parse([]byte(`{"type":"object","required":["area","sure"]}`)); err != nil {
		t.Fatal(err)
	}
	app.Intents["chat/answer"] = call.Intent{Out: "sorted"}
	h := gatewayServer(t, app, nil)
	h.want("POST", "/v1/chat/completions", `{"model":"stone/chat/answer","messages":[{"role":"user","content":"about an invoice"}]}`, 200, `"content":"{\"area\":\"billing\",\"sure\":true}"`)
	h.want("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"about an invoice"}`, 200, `"text":"{\"area\":\"billing\",\"sure\":true}"`)
	h.want("POST", "/v1/messages", `{"model":"stone/chat/answer","max_tokens":99,"messages":[{"role":"user","content":"about an invoice"}]}`, 200, `"text":"{\"area\":\"billing\",\"sure\":true}"`)
}
