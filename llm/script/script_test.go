package script_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

func Example() {
	model := script.New(
		script.Call("read_file", `{"path":"go.mod"}`),
		script.Text("The module is called stone."),
	)
	req := &llm.Request{Messages: []llm.Message{llm.User("What is the module called?")}}
	for range 2 {
		reply, err := llm.Collect(context.Background(), model, req)
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Messages = append(req.Messages, reply.Message())
		for _, call := range reply.ToolCalls {
			fmt.Printf("%s %s\n", call.Name, call.Input)
			req.Messages = append(req.Messages, llm.ToolResult(call.ID, "module stone"))
		}
		fmt.Print(reply.Text)
	}
	// Output:
	// read_file {"path":"go.mod"}
	// The module is called stone.
}

func TestOutOfAnswers(t *testing.T) {
	m := script.New()
	_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if want := "script: request 1, but there are only 0 answers"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestRequests checks that the server reads the request that a provider's Model sends.
func TestRequests(t *testing.T) {
	req := &llm.Request{
		System:    "Be brief.",
		MaxTokens: 77,
		Messages: []llm.Message{
			llm.User("hi"),
			{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "Wait."}}, ToolCalls: []llm.ToolCall{{ID: "call_0", Name: "f", Input: []byte(`{"a":1}`)}}},
			llm.ToolResult("call_0", "x"),
		},
		Tools:          []llm.Tool{{Name: "f", Description: "d", Schema: []byte(`{"type":"object","properties":{}}`)}},
		ResponseFormat: &llm.Format{Schema: []byte(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)},
	}
	told := *req // a foreign server
	told.System = structured.System(req.System, req.ResponseFormat, false)
	m := script.New(script.JSON([]int{1}), script.JSON([]int{2}), script.JSON([]int{3}), script.JSON([]int{4}))
	server := httptest.NewServer(m)
	defer server.Close()
	for i, model := range []llm.Model{
		openai.New(openai.Config{Model: "m", URL: server.URL, Key: "test-key"}),
		anthropic.New(anthropic.Config{Model: "m", URL: server.URL, Key: "test-key"}),
		openai.New(openai.Config{Model: "m", URL: server.URL, Key: "test-key", Protocol: openai.Responses}),
		gemini.New(gemini.Config{Model: "m", URL: server.URL, Key: "test-key"}),
	} {
		reply, err := llm.Collect(t.Context(), model, req)
		if err != nil || reply.Text != fmt.Sprintf("[%d]", i+1) {
			t.Fatalf("%q, %v", reply.Text, err)
		}
		got := m.Requests()[i]
		show := func(r *llm.Request) string {
			s := fmt.Sprintf("%s %d %s %s %s", r.System, r.MaxTokens, r.Tools[0].Name, r.Tools[0].Description, r.Tools[0].Schema)
			for _, msg := range r.Messages {
				s += fmt.Sprintf(" | %s %s %s", msg.Role, msg.Text(), msg.CallID)
				for _, c := range msg.ToolCalls {
					s += fmt.Sprintf(" %s %s %s", c.ID, c.Name, c.Input)
				}
			}
			return s + string(r.ResponseFormat.Schema)
		}
		if got.Model != "m" || show(got) != show(&told) {
			t.Errorf("%T\n got %s\nwant %s", model, show(got), show(&told))
		}
	}
}

func TestNotOfTheProtocol(t *testing.T) {
	w := httptest.NewRecorder()
	script.New().ServeHTTP(w, httptest.NewRequest("POST", "/v1/messages", strings.NewReader("{")))
	if w.Code != 400 || !strings.HasPrefix(w.Body.String(), "script: the request is not of the protocol") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}
