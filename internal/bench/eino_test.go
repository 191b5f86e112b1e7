//go:build !alone

package bench

import (
	"context"
	"strconv"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
)

func einoChain[T content[T]](names []string) (compose.Runnable[*T, *T], error) {
	chain := compose.NewChain[*T, *T]()
	for _, name := range names {
		chain.AppendLambda(compose.InvokableLambda(func(_ context.Context, v *T) (*T, error) {
			next := (*v).next()
			return &next, nil
		}), compose.WithNodeName(name))
	}
	return chain.Compile(context.Background())
}

func einoSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	chain, err := einoChain[T](stepNames(steps))
	return func() (v T, err error) {
		last, err := chain.Invoke(context.Background(), &first)
		if err != nil {
			return v, err
		}
		return *last, nil
	}, err
}

func einoBuild(names []string) error {
	_, err := einoChain[small](names)
	return err
}

// einoFanOut is static: the lanes are the nodes of a Parallel.
func einoFanOut(lanes int) (func() (int, error), error) {
	p := compose.NewParallel()
	for i := range lanes {
		p.AddLambda(strconv.Itoa(i), compose.InvokableLambda(func(context.Context, int) (*result, error) {
			r := item{N: i}.work()
			return &r, nil
		}))
	}
	run, err := compose.NewChain[int, map[string]any]().AppendParallel(p).Compile(context.Background())
	return func() (int, error) {
		out, err := run.Invoke(context.Background(), 0)
		return len(out), err
	}, err
}

type einoModel struct {
	*script
	call, final *schema.Message
}

func newEinoModel(s *script) *einoModel {
	call := schema.ToolCall{ID: "call_0", Type: "function", Function: schema.FunctionCall{Name: toolName, Arguments: callInput}}
	return &einoModel{s, schema.AssistantMessage("", []schema.ToolCall{call}), schema.AssistantMessage(finalText, nil)}
}

func (m *einoModel) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	if m.over() {
		return m.final, nil
	}
	return m.call, nil
}

func (m *einoModel) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	out, err := m.Generate(ctx, in, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{out}), err
}

func (m *einoModel) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

// einoTool takes its input unchanged, which is cheaper than a tool that its utils make of
// a function.
type einoTool struct {
	*script
	info *schema.ToolInfo
}

func einoTools(s *script) compose.ToolsNodeConfig {
	path := map[string]*schema.ParameterInfo{"path": {Type: schema.String, Required: true}}
	look := einoTool{s, &schema.ToolInfo{Name: toolName, Desc: toolText, ParamsOneOf: schema.NewParamsOneOfByParams(path)}}
	return compose.ToolsNodeConfig{Tools: []tool.BaseTool{look}}
}

func (t einoTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

func (t einoTool) InvokableRun(context.Context, string, ...tool.Option) (string, error) {
	return t.look(), nil
}

// einoTurns is the agent of its flow package.
func einoTurns(s *script) (func() (string, error), error) {
	a, err := react.NewAgent(context.Background(), &react.AgentConfig{
		ToolCallingModel: newEinoModel(s), ToolsConfig: einoTools(s), MaxStep: 2*s.calls + 2,
	})
	return func() (string, error) {
		out, err := a.Generate(context.Background(), []*schema.Message{schema.SystemMessage(systemText), schema.UserMessage(userText)})
		if err != nil {
			return "", err
		}
		return out.Content, nil
	}, err
}

// einoAgentTurns is the newer agent of its adk package, which sends every message as an
// event.
func einoAgentTurns(s *script) (func() (string, error), error) {
	ctx := context.Background()
	a, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "look", Description: toolText, Instruction: systemText, Model: newEinoModel(s),
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: einoTools(s)}, MaxIterations: s.calls + 1,
	})
	r := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a})
	return func() (text string, err error) {
		events := r.Run(context.Background(), []*schema.Message{schema.UserMessage(userText)})
		for {
			event, ok := events.Next()
			switch {
			case !ok:
				return text, nil
			case event.Err != nil:
				return "", event.Err
			case event.Output != nil && event.Output.MessageOutput != nil:
				text = event.Output.MessageOutput.Message.Content
			}
		}
	}, err
}
