package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

type Module struct {
	Path string `json:"path"`
	Go   string `json:"go"`
}

// An agent reads a file with its tool and answers in the form of the type that it
// produces.
func Example() {
	module := dag.NewType[Module]("module")

	read := agent.Tool{
		Tool: llm.Tool{Name: "read_file", Description: "Returns the text of a file.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "module example.com/stone\n\ngo 1.26\n"}, nil
		},
	}
	model := script.New( // a real one is openai.New or anthropic.New
		script.Call("read_file", `{"path":"go.mod"}`),
		script.Text(`{"path":"example.com/stone","go":"1.26"}`),
	)
	find := agent.New("find-module", module, model, agent.Config{
		System: agent.Say("You answer questions about Go modules."),
		User:   agent.Say("Which module is this, and for which version of Go?"),
		Use:    []agent.Middleware{agent.Use(read)},
	})

	res, err := stone.Run(context.Background(), find, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := module.Of(res.Node)
	fmt.Println(m.Path, m.Go, err)

	conversation, err := agent.Conversation(res.Node)
	for _, m := range conversation {
		fmt.Printf("%s: %.20q\n", m.Role, m.Text())
	}
	fmt.Println(err)
	// Output:
	// example.com/stone 1.26 <nil>
	// user: "Which module is this"
	// assistant: ""
	// tool: "module example.com/s"
	// assistant: "{\"path\":\"example.com"
	// <nil>
}
