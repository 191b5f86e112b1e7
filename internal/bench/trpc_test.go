//go:build !alone

package bench

import (
	"context"
	"errors"
	"reflect"

	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/graph"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/tool"
)

// trpcField is a field of the state that is passed on by reference: without
// DisableDeepCopy the whole value is copied by reflection for every node.
func trpcField[T any](reducer graph.StateReducer) graph.StateField {
	return graph.StateField{Type: reflect.TypeFor[T](), Reducer: reducer, DisableDeepCopy: true}
}

// trpcLine is a line of nodes; done gets the output of the last one.
func trpcLine[T content[T]](names []string, done func(*T)) (*graph.Graph, error) {
	g := graph.NewStateGraph(graph.NewStateSchema().AddField("doc", trpcField[*T](nil)))
	for i, name := range names {
		g.AddNode(name, func(_ context.Context, s graph.State) (any, error) {
			next := (*s["doc"].(*T)).next()
			if i == len(names)-1 {
				done(&next)
			}
			return graph.State{"doc": &next}, nil
		})
		if i > 0 {
			g.AddEdge(names[i-1], name)
		}
	}
	return g.SetEntryPoint(names[0]).SetFinishPoint(names[len(names)-1]).Compile()
}

// trpcRun runs a graph without spans and without the events of the executor.
func trpcRun(e *graph.Executor, start graph.State) error {
	inv := agent.NewInvocation(agent.WithInvocationRunOptions(agent.NewRunOptions(
		agent.WithDisableTracing(true),
		agent.WithDisableGraphExecutorEvents(true),
		agent.WithDisableGraphCompletionEvent(true),
	)))
	events, err := e.Execute(context.Background(), start, inv)
	if err != nil {
		return err
	}
	for event := range events {
		if event.Error != nil {
			err = errors.New(event.Error.Message)
		}
	}
	return err
}

func trpcSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	var last *T
	g, err := trpcLine(stepNames(steps), func(v *T) { last = v })
	if err != nil {
		return nil, err
	}
	e, err := graph.NewExecutor(g, graph.WithMaxSteps(steps+1), graph.WithExecutionEngine(graph.ExecutionEngineBSP))
	return func() (v T, err error) {
		if err := trpcRun(e, graph.State{"doc": &first}); err != nil {
			return v, err
		}
		return *last, nil
	}, err
}

func trpcBuild(names []string) error {
	g, err := trpcLine(names, func(*small) {})
	if err != nil {
		return err
	}
	_, err = graph.NewExecutor(g)
	return err
}

// trpcFanOut is dynamic: a node returns a command for each lane.
func trpcFanOut(lanes int) (func() (int, error), error) {
	type results = []*result
	done := 0
	schema := graph.NewStateSchema().
		AddField("item", trpcField[*item](nil)).
		AddField("results", trpcField[results](func(all, one any) any {
			list, _ := all.(results)
			list = append(list, one.(results)...)
			done = len(list)
			return list
		}))
	g, err := graph.NewStateGraph(schema).
		AddNode("split", func(context.Context, graph.State) (any, error) {
			commands := make([]*graph.Command, 0, lanes)
			for _, it := range (batch{Lanes: lanes}).items() {
				commands = append(commands, &graph.Command{GoTo: "lane", Update: graph.State{"item": &it}})
			}
			return commands, nil
		}).
		AddNode("lane", func(_ context.Context, s graph.State) (any, error) {
			r := s["item"].(*item).work()
			return graph.State{"results": results{&r}}, nil
		}).
		AddEdge("split", "lane").
		SetEntryPoint("split").SetFinishPoint("lane").Compile()
	if err != nil {
		return nil, err
	}
	e, err := graph.NewExecutor(g)
	return func() (int, error) {
		done = 0
		err := trpcRun(e, graph.State{})
		return done, err
	}, err
}

// trpcModel has GenerateContentIter, which spares a goroutine and a channel.
type trpcModel struct {
	*script
	call, final *model.Response
}

func (*trpcModel) Info() model.Info { return model.Info{Name: "canned"} }

func (m *trpcModel) GenerateContentIter(context.Context, *model.Request) (model.Seq[*model.Response], error) {
	response := m.call
	if m.over() {
		response = m.final
	}
	return func(yield func(*model.Response) bool) { yield(response) }, nil
}

func (*trpcModel) GenerateContent(context.Context, *model.Request) (<-chan *model.Response, error) {
	return nil, errors.New("only GenerateContentIter is answered")
}

// trpcTool takes its input unchanged, which is cheaper than a function tool.
type trpcTool struct {
	*script
	declaration *tool.Declaration
}

func (t trpcTool) Declaration() *tool.Declaration            { return t.declaration }
func (t trpcTool) Call(context.Context, []byte) (any, error) { return t.look(), nil }

// trpcTurns uses a new session for every run, since all runs in a session read its
// messages.
func trpcTurns(s *script) (func() (string, error), error) {
	call := model.ToolCall{ID: "call_0", Type: "function", Function: model.FunctionDefinitionParam{Name: toolName, Arguments: []byte(callInput)}}
	m := &trpcModel{s,
		&model.Response{ID: "1", Done: true, Choices: []model.Choice{{Message: model.Message{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{call}}}}},
		&model.Response{ID: "2", Done: true, Choices: []model.Choice{{Message: model.NewAssistantMessage(finalText)}}},
	}
	look := trpcTool{s, &tool.Declaration{Name: toolName, Description: toolText, InputSchema: &tool.Schema{
		Type: "object", Properties: map[string]*tool.Schema{"path": {Type: "string"}}, Required: []string{"path"},
	}}}
	a := llmagent.New("look", llmagent.WithModel(m), llmagent.WithInstruction(systemText), llmagent.WithTools([]tool.Tool{look}))
	sessions := inmemory.NewSessionService()
	r := runner.NewRunner("bench", a, runner.WithSessionService(sessions))
	return func() (text string, err error) {
		ctx := context.Background()
		events, err := r.Run(ctx, "user", "session", model.NewUserMessage(userText),
			agent.WithDisableTracing(true), agent.WithDisableResponseUsageTracking(true), agent.WithDisableModelExecutionEvents(true))
		if err != nil {
			return "", err
		}
		for event := range events {
			if event.Error != nil {
				err = errors.New(event.Error.Message)
			}
			if len(event.Choices) > 0 {
				text = event.Choices[0].Message.Content
			}
		}
		if err != nil {
			return "", err
		}
		return text, sessions.DeleteSession(ctx, session.Key{AppName: "bench", UserID: "user", SessionID: "session"})
	}, nil
}
