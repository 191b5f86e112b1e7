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

// An agent reads a file with its tool and answers in the format of its type.
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

// Servers that enforce a response format by a grammar cannot call tools at the same
// time. Two agents do the work of one there: the first gathers, with tools, and
// answers freely; the second has no tools, and structures the first one's answer.
func Example_explorerAndStructurer() {
	exploration := dag.NewType[agent.Text]("exploration")
	module := dag.NewType[Module]("module")

	look := agent.Tool{
		Tool: llm.Tool{Name: "list_directory", Description: "Lists the files."},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "go.mod: module example.com/stone, go 1.26"}, nil
		},
	}
	model := script.New( // a real one is openai.New with the URL of the server
		script.Call("list_directory", `{}`),
		script.Text("A Go module, example.com/stone, for Go 1.26."),
		script.Text(`{"path":"example.com/stone","go":"1.26"}`),
	)
	find := stone.Seq("find-module",
		agent.New("explore", exploration, model, agent.Config{
			User: agent.Say("Which module is this, and for which version of Go?"),
			Use:  []agent.Middleware{agent.Use(look)},
		}),
		agent.New("structure", module, model, agent.Config{
			System:   agent.Say("Return the statements about the module as JSON."),
			User:     agent.Prompt(exploration, func(found agent.Text) string { return found.Text }),
			MaxTurns: 1,
		}),
	)

	res, err := stone.Run(context.Background(), find, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := module.Of(res.Node)
	fmt.Println(m.Path, m.Go, err)
	for i, req := range model.Requests() {
		fmt.Printf("request %d: %d tools, format %t\n", i+1, len(req.Tools), req.ResponseFormat != nil)
	}
	// Output:
	// example.com/stone 1.26 <nil>
	// request 1: 1 tools, format false
	// request 2: 1 tools, format false
	// request 3: 0 tools, format true
}

// A middleware is tested without an agent: the inner handler takes the place of the model.
func ExampleWrap() {
	hurry := agent.Middleware{
		Name:  "hurry",
		Guard: func(c agent.Context) bool { return c.Turn > 2 },
		Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			c.System += " Be brief."
			return next(ctx, c)
		},
	}
	turn := agent.Wrap([]agent.Middleware{hurry}, func(_ context.Context, c agent.Context) (agent.Context, error) {
		fmt.Printf("turn %d: %s\n", c.Turn, c.System)
		c.Reply = &llm.Reply{Text: "done"}
		return c, nil
	})
	for n := range 3 {
		if _, err := turn(context.Background(), agent.Context{Turn: n + 1, System: "You fix bugs."}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// turn 1: You fix bugs.
	// turn 2: You fix bugs.
	// turn 3: You fix bugs. Be brief.
}
