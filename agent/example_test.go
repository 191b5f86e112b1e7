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
	model := script.New( // a real model is made with openai.New or anthropic.New
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

// Servers that enforce a response format with a grammar cannot call tools at the same time. Two agents then share the work: the
// first uses tools and answers freely; the second has no tools and turns the first agent's answer into the type.
func Example_explorerAndStructurer() {
	exploration := dag.NewType[agent.Text]("exploration")
	module := dag.NewType[Module]("module")

	look := agent.Tool{
		Tool: llm.Tool{Name: "list_directory", Description: "Lists the files."},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "go.mod: module example.com/stone, go 1.26"}, nil
		},
	}
	model := script.New( // a real model is made with openai.New and the server's URL
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

// Wrap tests a middleware without an agent: the inner handler takes the place of the model.
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

type Question struct {
	Text string `json:"text" jsonschema:"one question, complete in itself"`
}

type Finding struct {
	Answer string `json:"answer"`
	Source string `json:"source"`
}

// An agent uses another agent as a tool. The findings stay in the DAG beside the report.
func ExampleAsTool() {
	question := dag.NewType[Question]("question")
	finding := dag.NewType[Finding]("finding")
	report := dag.NewType[agent.Text]("report")

	research := agent.New("research", finding, script.New(
		script.Text(`{"answer":"1.26","source":"go.mod"}`),
		script.Text(`{"answer":"MIT","source":"LICENSE"}`),
	), agent.Config{
		System: agent.Say("You answer one question about a repository."),
		User:   agent.Prompt(question, func(q Question) string { return q.Text }),
	})
	lead := agent.New("lead", report, script.New(
		script.Call("research", `{"text":"Which Go?"}`),
		script.Call("research", `{"text":"Which license?"}`),
		script.Text("It needs Go 1.26 and has the MIT license."),
	), agent.Config{
		User: agent.Say("Describe the repository."),
		Use:  []agent.Middleware{agent.AsTool("research", "Answers one question.", research, question, finding)},
	})

	res, err := stone.Run(context.Background(), lead, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := report.Of(res.Node)
	fmt.Println(text.Text, err)
	findings, err := dag.All(finding).From(res.DAG)
	for _, f := range findings {
		fmt.Println(f.Source, f.Answer)
	}
	fmt.Println(err)
	// Output:
	// It needs Go 1.26 and has the MIT license. <nil>
	// go.mod 1.26
	// LICENSE MIT
	// <nil>
}

type Transfer struct {
	To      string `json:"to" jsonschema:"billing or technical"`
	Summary string `json:"summary" jsonschema:"what the customer wants"`
}

// A hand-off does not need a tool. The first agent produces the name of the next agent and what it has to know, and a Match runs
// that agent.
func Example_handOff() {
	transfer := dag.NewType[Transfer]("transfer")
	answer := dag.NewType[agent.Text]("answer")

	takeOver := func(name, reply string) stone.Ashlar {
		return agent.New(name, answer, script.New(script.Text(reply)), agent.Config{
			System: agent.Say("You are the " + name + " department."),
			User:   agent.Prompt(transfer, func(t Transfer) string { return t.Summary }),
		})
	}
	support := stone.Seq("support",
		agent.New("front-desk", transfer, script.New(script.Text(`{"to":"billing","summary":"was charged twice"}`)), agent.Config{
			System: agent.Say("You find out who can help."),
			User:   agent.Say("I was charged twice!"),
		}),
		stone.Match("hand-off", stone.On(transfer, func(t Transfer) string { return t.To }),
			stone.Case("billing", takeOver("billing", "The second charge is refunded.")),
			stone.Case("technical", takeOver("technical", "Please restart it.")),
		),
	)
	res, err := stone.Run(context.Background(), support, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	said, err := answer.Of(res.Node)
	fmt.Println(said.Text, err)
	// Output: The second charge is refunded. <nil>
}

// A chat is one pipeline that runs once for each question, on the DAG of the previous run.
func ExampleConversationOf() {
	question := dag.NewType[Question]("question")
	answer := dag.NewType[agent.Text]("answer")

	model := script.New(script.Text("Slate is split, ashlar is cut."), script.Text("Slate."))
	chat := agent.New("chat", answer, model, agent.Config{
		System:       agent.Say("You answer questions about stone."),
		Conversation: agent.ConversationOf(answer),
		User:         agent.Prompt(question, func(q Question) string { return q.Text }),
	})

	var soFar dag.DAG
	for _, text := range []string{"How do slate and ashlar differ?", "Which is cheaper?"} {
		input, err := question.Append(soFar, Question{text})
		if err != nil {
			fmt.Println(err)
			return
		}
		res, err := stone.Run(context.Background(), chat, stone.Config{Input: input})
		if err != nil {
			fmt.Println(err)
			return
		}
		soFar = res.DAG
	}
	for _, m := range model.Requests()[1].Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// user: How do slate and ashlar differ?
	// assistant: Slate is split, ashlar is cut.
	// user: Which is cheaper?
}

type Chat struct {
	Messages []llm.Message `json:"messages"`
}

// The input of the pipeline is a chat, as a web server or another program sends it. An agent answers the messages so far.
func Example_chatAsInput() {
	chat := dag.NewType[Chat]("chat")
	answer := dag.NewType[agent.Text]("answer")

	reply := agent.New("reply", answer, script.New(script.Text("Slate.")), agent.Config{
		System:       agent.Say("You answer questions about stone."),
		Conversation: dag.Derive(chat, func(c Chat) []llm.Message { return c.Messages }),
	})
	input, err := chat.Append(dag.DAG{}, Chat{[]llm.Message{
		llm.User("How do slate and ashlar differ?"),
		{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "Slate is split, ashlar is cut."}}},
		llm.User("Which is cheaper?"),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := stone.Run(context.Background(), reply, stone.Config{Input: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	said, err := agent.Conversation(res.Node)
	fmt.Println(len(said), said[len(said)-1].Text(), err)
	// Output: 4 Slate. <nil>
}

// The model returns a verdict, and code turns the verdict into the result or rejects it.
func ExampleFinalize() {
	type verdict struct {
		OK     bool   `json:"ok"`
		Reason string `json:"reason"`
	}
	type passed struct {
		By string `json:"by"`
	}
	review := agent.New("review", dag.NewType[passed]("passed"), script.New(script.Text(`{"ok":false,"reason":"no tests"}`)), agent.Config{
		User: agent.Say("Is the change ready?"),
		Finalize: agent.Finalize(dag.NewType[verdict]("verdict"), func(v verdict) (passed, error) {
			if !v.OK {
				return passed{}, stone.Fail("review-rejected", "%s", v.Reason)
			}
			return passed{By: "the reviewer"}, nil
		}),
	})
	_, err := stone.Run(context.Background(), review, stone.Config{})
	fmt.Println(err)
	// Output: review-rejected at review: no tests
}

// The call of this tool ends the agent: the arguments are the answer.
func ExampleAnswer() {
	submit := agent.Tool{
		Tool: llm.Tool{Name: "submit", Description: "Submits the module.", Schema: json.RawMessage(`{"type":"object"}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "noted", Recommend: agent.Answer(string(input))}, nil
		},
	}
	module := dag.NewType[Module]("module")
	find := agent.New("find", module, script.New(script.Call("submit", `{"path":"example.com/stone","go":"1.26"}`)), agent.Config{
		User: agent.Say("Which module is this?"),
		Use:  []agent.Middleware{agent.Use(submit)},
	})
	m, err := stone.Produce(context.Background(), find, module, stone.Config{})
	fmt.Println(m.Path, m.Go, err)
	// Output: example.com/stone 1.26 <nil>
}
