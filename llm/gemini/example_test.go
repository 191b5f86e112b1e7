package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/script"
)

// The model calls a tool and receives its result. The reply's own message sends back the signature of the thinking.
func Example() {
	server := httptest.NewServer(script.New( // leave out URL and Key to call Google's server
		script.Answer{Reply: llm.Reply{ToolCalls: []llm.ToolCall{{ID: "c1", Name: "country", Input: json.RawMessage(`{}`)}}}},
		script.Text("The capital is Mexico City."),
	))
	defer server.Close()
	model := gemini.New(gemini.Config{Model: "gemini-2.5-flash", URL: server.URL, Key: llm.NoKey})

	req := &llm.Request{
		Messages: []llm.Message{llm.User("What is the capital of my country?")},
		Tools:    []llm.Tool{{Name: "country", Description: "The user's country."}},
	}
	for {
		reply, err := llm.Collect(context.Background(), model, req)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(reply.ToolCalls) == 0 {
			fmt.Println(reply.Text)
			return
		}
		req.Messages = append(req.Messages, reply.Message())
		for _, call := range reply.ToolCalls {
			req.Messages = append(req.Messages, llm.ToolResult(call.ID, "Mexico"))
		}
	}
	// Output: The capital is Mexico City.
}
