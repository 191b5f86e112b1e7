//go:build !alone

package bench

import (
	"context"
	"fmt"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	"iter"
)

// adkLine is a chain of function nodes. The first one gets the text of the
// user's message.
func adkLine[T content[T]](names []string, first T) (agent.Agent, error) {
	nodes := make([]workflow.Node, 0, len(names)+1)
	nodes = append(nodes, workflow.Start)
	for i, name := range names {
		if i == 0 {
			nodes = append(nodes, workflow.NewFunctionNode(name, func(agent.Context, string) (*T, error) {
				v := first.next()
				return &v, nil
			}, workflow.NodeConfig{}))
			continue
		}
		nodes = append(nodes, workflow.NewFunctionNode(name, func(_ agent.Context, v *T) (*T, error) {
			next := (*v).next()
			return &next, nil
		}, workflow.NodeConfig{}))
	}
	return workflowagent.New(workflowagent.Config{Name: "line", Edges: workflow.Chain(nodes...)})
}

// adkRun runs a workflow in a new session in memory, which its runner requires, and
// returns the last output.
func adkRun(a agent.Agent) (any, error) {
	r, err := runner.New(runner.Config{AppName: "bench", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return nil, err
	}
	var last any
	start := genai.NewContentFromText("start", genai.RoleUser)
	for event, err := range r.Run(context.Background(), "user", "session", start, agent.RunConfig{}) {
		if err != nil {
			return nil, err
		}
		if event.Output != nil {
			last = event.Output
		}
	}
	return last, nil
}

func adkSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	line, err := adkLine(stepNames(steps), first)
	return func() (v T, err error) {
		last, err := adkRun(line)
		if err != nil {
			return v, err
		}
		out, ok := last.(*T)
		if !ok {
			return v, fmt.Errorf("the last output is a %T", last)
		}
		return *out, nil
	}, err
}

func adkBuild(names []string) error {
	_, err := adkLine(names, aSmall)
	return err
}

// adkFanOut is dynamic: a node makes the items, a parallel worker runs a node
// on each.
func adkFanOut(lanes int) (func() (int, error), error) {
	split := workflow.NewFunctionNode("split", func(agent.Context, string) ([]item, error) {
		return batch{Lanes: lanes}.items(), nil
	}, workflow.NodeConfig{})
	lane := workflow.NewFunctionNode("lane", func(_ agent.Context, it item) (*result, error) {
		r := it.work()
		return &r, nil
	}, workflow.NodeConfig{})
	each, err := workflow.NewParallelWorker("lanes", lane, 0, workflow.NodeConfig{})
	if err != nil {
		return nil, err
	}
	a, err := workflowagent.New(workflowagent.Config{Name: "fan-out", Edges: workflow.Chain(workflow.Start, split, each)})
	return func() (int, error) {
		last, err := adkRun(a)
		out, _ := last.([]any)
		return len(out), err
	}, err
}

type adkModel struct {
	*script
	call, final *genai.Content
}

func (m *adkModel) Name() string { return "canned" }

func (m *adkModel) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	content := m.call
	if m.over() {
		content = m.final
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: content, TurnComplete: true}, nil)
	}
}

// adkTurns uses a new session for every run, as adkRun does.
func adkTurns(s *script) (func() (string, error), error) {
	type found struct {
		Text string `json:"text"`
	}
	look, err := functiontool.New(functiontool.Config{Name: toolName, Description: toolText},
		func(agent.Context, lookIn) (found, error) { return found{s.look()}, nil })
	if err != nil {
		return nil, err
	}
	call := &genai.Part{FunctionCall: &genai.FunctionCall{ID: "call_0", Name: toolName, Args: map[string]any{"path": "go.mod"}}}
	a, err := llmagent.New(llmagent.Config{
		Name: "look", Instruction: systemText, Tools: []tool.Tool{look},
		Model: &adkModel{s, genai.NewContentFromParts([]*genai.Part{call}, genai.RoleModel), genai.NewContentFromText(finalText, genai.RoleModel)},
	})
	if err != nil {
		return nil, err
	}
	return func() (text string, err error) {
		r, err := runner.New(runner.Config{AppName: "bench", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
		if err != nil {
			return "", err
		}
		for event, err := range r.Run(context.Background(), "user", "session", genai.NewContentFromText(userText, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return "", err
			}
			if event.Content != nil {
				text = event.Content.Parts[0].Text
			}
		}
		return text, nil
	}, nil
}
