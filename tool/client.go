package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Client returns a tool that is executed by the run's client, such as a web page. Each call asks a question whose answer is the
// result of the call (see [ask.Call.Client]), so a run with a journal can wait for the result. The parameters name, description
// and I are the same as in [Func].
func Client[I any](name, description string, opts ...Option) agent.Middleware {
	m := Func(name, description, func(context.Context, I) (string, error) { return "", nil }, append([]Option{Effects()}, opts...)...)
	if m.Tool.Err == nil {
		byClient(m.Tool)
	}
	return m
}

// byClient changes t so that the run's client executes its calls.
func byClient(t *agent.Tool) {
	name := t.Name
	t.Asks, t.Parallel, t.Client = true, true, true
	t.Run = func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
		about, ok := agent.CallIn(ctx)
		if !ok {
			about = ask.Call{Tool: name, Input: input}
		}
		about.Request, about.Said, about.Client = "", "", true
		response, err := stone.In(ctx).Ask(ask.Question{
			Name: asker(ctx) + "/" + name,
			Text: fmt.Sprintf("%s calls %s, which the client of the run executes:\n%s\nAnswer with the result.", asker(ctx), name, indented(arguments(input))),
			Call: &about,
		})
		return agent.Result{Text: response}, err
	}
}

func free(context.Context) budget.Bound { return budget.Bound{} }

// ClientTools offers the tools listed in the nearest node of type t. The run's client executes them, as with [Client]. If there
// is no node of type t, no tools are offered. A listed tool is omitted if the agent already has a tool with the same name.
//
// The client chooses the names and descriptions of these tools, so it controls a part of the prompt.
func ClientTools(t dag.Type[[]llm.Tool]) agent.Middleware {
	offered := dag.Maybe(t)
	return agent.Middleware{
		Name: "client-tools", Reads: []dag.Querier{t.Query().Optional().Inner()}, Effects: []string{}, Bound: free,
		Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			tools, err := offered.From(c.DAG)
			if err != nil {
				return c, err
			}
			if tools == nil {
				return next(ctx, c)
			}
			for _, t := range *tools {
				if !slices.ContainsFunc(c.Tools, func(own agent.Tool) bool { return own.Name == t.Name }) {
					offer := agent.Tool{Tool: llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema}, Effects: []string{}}
					byClient(&offer)
					c = c.Offer(offer)
				}
			}
			return next(ctx, c)
		},
	}
}
