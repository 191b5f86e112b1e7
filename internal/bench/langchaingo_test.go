//go:build !alone

package bench

import (
	"context"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"errors"
)

// langchainChain is a chain of transforms that passes a pointer from one key to the next;
// SimpleSequentialChain passes strings only.
func langchainChain[T content[T]](names []string) (*chains.SequentialChain, error) {
	steps := make([]chains.Chain, len(names))
	in := "start"
	for i, out := range names {
		from := in
		steps[i] = chains.NewTransform(func(_ context.Context, m map[string]any, _ ...chains.ChainCallOption) (map[string]any, error) {
			v := (*m[from].(*T)).next()
			return map[string]any{out: &v}, nil
		}, []string{from}, []string{out})
		in = out
	}
	return chains.NewSequentialChain(steps, []string{"start"}, []string{in})
}

func langchainSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	names := stepNames(steps)
	chain, err := langchainChain[T](names)
	return func() (v T, err error) {
		out, err := chains.Call(context.Background(), chain, map[string]any{"start": &first})
		if err != nil {
			return v, err
		}
		return *out[names[steps-1]].(*T), nil
	}, err
}

func langchainBuild(names []string) error {
	_, err := langchainChain[small](names)
	return err
}

func langchainFanOut(lanes int) (func() (int, error), error) {
	lane := chains.NewTransform(func(_ context.Context, m map[string]any, _ ...chains.ChainCallOption) (map[string]any, error) {
		r := m["item"].(*item).work()
		return map[string]any{"result": &r}, nil
	}, []string{"item"}, []string{"result"})
	return func() (int, error) {
		inputs := make([]map[string]any, 0, lanes)
		for _, it := range (batch{Lanes: lanes}).items() {
			inputs = append(inputs, map[string]any{"item": &it})
		}
		out, err := chains.Apply(context.Background(), lane, inputs, 0)
		return len(out), err
	}, nil
}

// langchainModel is the model of langgraphgo too.
type langchainModel struct {
	*script
	call, final *llms.ContentResponse
}

func newLangchainModel(s *script) *langchainModel {
	call := llms.ToolCall{ID: "call_0", Type: "function", FunctionCall: &llms.FunctionCall{Name: toolName, Arguments: callInput}}
	return &langchainModel{s,
		&llms.ContentResponse{Choices: []*llms.ContentChoice{{ToolCalls: []llms.ToolCall{call}}}},
		&llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: finalText}}},
	}
}

func (m *langchainModel) GenerateContent(context.Context, []llms.MessageContent, ...llms.CallOption) (*llms.ContentResponse, error) {
	if m.over() {
		return m.final, nil
	}
	return m.call, nil
}

func (m *langchainModel) Call(context.Context, string, ...llms.CallOption) (string, error) {
	return "", errors.New("only GenerateContent is answered")
}

// langchainTool is also the tool of langgraphgo, which needs its Schema.
type langchainTool struct{ *script }

func (langchainTool) Name() string        { return toolName }
func (langchainTool) Description() string { return toolText }
func (langchainTool) Schema() map[string]any {
	return lookSchema
}
func (t langchainTool) Call(context.Context, string) (string, error) { return t.look(), nil }

var lookSchema = map[string]any{
	"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"},
}

// langchainTurns is the agent that uses the tool calls of a model.
func langchainTurns(s *script) (func() (string, error), error) {
	opts := []agents.Option{agents.NewOpenAIOption().WithSystemMessage(systemText), agents.WithMaxIterations(s.calls + 1)}
	a := agents.NewOpenAIFunctionsAgent(newLangchainModel(s), []tools.Tool{langchainTool{s}}, opts...)
	e := agents.NewExecutor(a, opts...)
	return func() (string, error) { return chains.Run(context.Background(), e, userText) }, nil
}
