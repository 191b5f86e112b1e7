package openai

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stonelayer/stone/llm"
)

// A tool of a namespace is offered by a name of its own, and the client is told both parts of it.
func TestNamespaces(t *testing.T) {
	raw := []json.RawMessage{
		[]byte(`{"type":"namespace","name":"files","description":"Files","tools":[{"type":"function","name":"read","parameters":{"type":"object"}},{"type":"custom","name":"edit"}]}`),
		[]byte(`{"type":"function","name":"read"}`),
		[]byte(`{"type":"web_search"}`),
	}
	got, err := readTools(raw, func(kind string) bool { return kind == "web_search" })
	var names []string
	for _, tool := range got.offered {
		names = append(names, tool.Name)
	}
	if err != nil || !slices.Equal(names, []string{"files__read", "files__edit", "read"}) || len(got.echo) != 2 {
		t.Fatalf("%v, %q, %v", err, names, got.echo)
	}
	resp := response{ID: "resp_x", tools: got.clientNames}
	out := resp.outputOf(&llm.Reply{ToolCalls: []llm.ToolCall{
		{ID: "1", Name: "files__read", Input: json.RawMessage(`{}`)},
		{ID: "2", Name: "files__edit", Input: json.RawMessage(`{"input":"new"}`)},
		{ID: "3", Name: "read", Input: json.RawMessage(`{}`)}}})
	for i, want := range []string{
		`{"type":"function_call","id":"fc_x_0","call_id":"1","name":"read","namespace":"files","arguments":"{}","status":"completed"}`,
		`{"type":"custom_tool_call","id":"ctc_x_1","call_id":"2","name":"edit","namespace":"files","input":"new","status":"completed"}`,
		`{"type":"function_call","id":"fc_x_2","call_id":"3","name":"read","arguments":"{}","status":"completed"}`,
	} {
		if text, _ := json.Marshal(out[i]); string(text) != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

func TestMediaByURL(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{`[{"type":"image_url","image_url":{"url":"https://a.example/x"}}]`, "image/*"},
		{`[{"type":"image_url","image_url":{"url":"https://a.example/x.php?file=a.png"}}]`, "image/*"},
		{`[{"type":"input_image","image_url":"https://a.example/x.png?signature=1"}]`, "image/png"},
		{`[{"type":"input_image","image_url":"data:image/gif;base64,AAAA"}]`, "image/gif"},
		{`[{"type":"input_file","file_url":"https://a.example/x.pdf"}]`, "application/pdf"},
		{`[{"type":"input_file","file_url":"https://a.example/x"}]`, "application/octet-stream"},
	} {
		parts, err := content("input", []byte(c.content))
		if err != nil || len(parts) != 1 || parts[0].Media.Type != c.want {
			t.Errorf("%s: %+v, %v; want %s", c.content, parts, err, c.want)
		}
	}
}
