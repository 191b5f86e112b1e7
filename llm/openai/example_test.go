package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// The model thinks, calls a tool, and continues thinking with the result.
func Example_responses() {
	server := httptest.NewServer(script.New(
		script.Answer{Reply: llm.Reply{Reasoning: "Which time zone?", ToolCalls: []llm.ToolCall{{ID: "1", Name: "now", Input: json.RawMessage(`{}`)}}}},
		script.Text("It is late."),
	))
	defer server.Close()

	model := openai.New(openai.Config{Model: "gpt-5-mini", URL: server.URL, Key: "key", Protocol: openai.Responses})
	req := &llm.Request{
		Messages: []llm.Message{llm.User("What time is it?")},
		Tools:    []llm.Tool{{Name: "now", Description: "Returns the time."}},
	}
	for {
		reply, err := llm.Collect(context.Background(), model, req)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(reply.Reasoning, reply.Text, "\n")
		if len(reply.ToolCalls) == 0 {
			return
		}
		req.Messages = append(req.Messages, reply.Message()) // contains the encrypted reasoning
		for _, call := range reply.ToolCalls {
			req.Messages = append(req.Messages, llm.ToolResult(call.ID, "23:59"))
		}
	}
	// Output:
	// Which time zone?
	// It is late.
}
