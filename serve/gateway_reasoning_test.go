package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// What a provider wants back in the next turn reaches it again when a client sends the
// reasoning back, by its encrypted content or its id. Nothing else that a client could send
// reaches it.
func TestReasoning(t *testing.T) {
	kept := map[string]json.RawMessage{"vendor/thinking": json.RawMessage(`"sealed by the vendor"`)}
	turn := llm.Reply{
		Text: "polite look", Reasoning: "It is about a stone.", Metadata: kept, Usage: llm.Usage{ReasoningTokens: 1},
		ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "look", Input: json.RawMessage(`{"at":"it","deep":1}`)}},
	}
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		if last := req.Messages[len(req.Messages)-1]; last.Role != llm.RoleTool {
			return script.Answer{Reply: turn}
		}
		return script.Text(fmt.Sprintf("polite: %s", req.Messages[1].Metadata))
	})
	h := gatewayServer(t, gated(model, model), nil)
	const tools = `"tools":[{"type":"function","name":"look"}]`
	for _, tt := range []struct {
		name, more string
		change     func(string) string
		want       bool
	}{
		{name: "stored", want: true},
		{name: "not stored", more: `,"store":false,"include":["reasoning.encrypted_content"]`, want: true},
		{name: "without its id", more: `,"include":["reasoning.encrypted_content"]`, want: true,
			change: func(s string) string { return strings.Replace(s, `"id":"rs_`, `"ID":"none_`, 1) }},
		{name: "other text", change: func(s string) string { return strings.Replace(s, "polite look", "I was told to obey", 1) }},
		{name: "another call", change: func(s string) string { return strings.Replace(s, `\"it\"`, `\"all\"`, 1) }},
		{name: "of a run that does not exist", change: func(s string) string { return strings.Replace(s, `"id":"rs_`, `"id":"rs_x`, 1) }},
		{name: "of another server", change: func(s string) string {
			return strings.Replace(s, `"type":"reasoning"`, `"type":"reasoning","encrypted_content":"gAAAA"`, 1)
		}},
	} {
		body := `{"model":"stone/chat/answer","input":"c",` + tools + tt.more + `}`
		var r struct{ Output json.RawMessage }
		text := h.want("POST", "/v1/responses", body, 200, `"summary":[{"type":"summary_text","text":"It is about a stone."}]`)
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "sealed by") || strings.Contains(text, "encrypted_content") != (tt.more != "") || !strings.Contains(text, `"reasoning_tokens":1`) {
			t.Errorf("%s: the client gets %s", tt.name, text)
		}
		output := strings.TrimSuffix(strings.TrimPrefix(string(r.Output), "["), "]")
		if tt.change != nil {
			changed := tt.change(output)
			if changed == output {
				t.Fatalf("%s: nothing was changed in %s", tt.name, output)
			}
			output = changed
		}
		again := `{"model":"stone/chat/answer",` + tools + tt.more + `,"input":[{"role":"user","content":"c"},` + output + `,{"type":"function_call_output","call_id":"call_1","output":"seen"}]}`
		got := outputText(t, h.want("POST", "/v1/responses", again, 200, ""))
		if strings.Contains(got, "sealed by the vendor") != tt.want {
			t.Errorf("%s: the model got %q", tt.name, got)
		}
	}
	// Its summary is part of the stream, before the text.
	all := fmt.Sprintf("%s", h.streamed("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"c","stream":true,`+tools+`}`))
	thought, said := strings.Index(all, `"response.reasoning_summary_text.delta"`), strings.Index(all, `"response.output_text.delta"`)
	if thought < 0 || said < thought {
		t.Errorf("the stream is %s", all)
	}
	// With previous_response_id, too.
	var first struct{ ID string }
	if err := json.Unmarshal([]byte(h.want("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"c",`+tools+`}`, 200, "")), &first); err != nil {
		t.Fatal(err)
	}
	got := h.want("POST", "/v1/responses", `{"model":"stone/chat/answer",`+tools+`,"previous_response_id":"`+first.ID+`","input":[{"type":"function_call_output","call_id":"call_1","output":"seen"}]}`, 200, "")
	if !strings.Contains(got, "sealed by the vendor") {
		t.Errorf("continued by its id: %s", got)
	}
}

// Reasoning of other tenants reaches no model.
func TestForeignReasoning(t *testing.T) {
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		var got []string
		for _, m := range req.Messages {
			got = append(got, fmt.Sprint(len(m.Metadata)))
		}
		return script.Answer{Reply: llm.Reply{Text: "polite", StopReason: strings.Join(got, " "), Metadata: map[string]json.RawMessage{"vendor/thinking": json.RawMessage(`"x"`)}}}
	})
	h := gatewayServer(t, gated(model, model), tenants{})
	_, text := h.do("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"c"}`, "X-Tenant", "acme")
	var r struct {
		ID     string
		Output []json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Output) != 2 {
		t.Fatalf("%v: %s", err, text)
	}
	again := fmt.Sprintf(`{"model":"stone/chat/answer","input":[{"role":"user","content":"c"},%s,%s,{"role":"user","content":"d"}]}`, r.Output[0], r.Output[1])
	for tenant, want := range map[string]string{"acme": "0 1 0", "other": "0 0 0"} {
		if status, text := h.do("POST", "/v1/responses", again, "X-Tenant", tenant); status != 200 {
			t.Errorf("%s: %d %s", tenant, status, text)
		}
		asked := model.Requests()
		last := asked[len(asked)-1]
		var got []string
		for _, m := range last.Messages {
			got = append(got, fmt.Sprint(len(m.Metadata)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: the turns have metadata %v, want %s", tenant, got, want)
		}
	}
}
