package bench

import (
	"context"
	"fmt"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"
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

// adkRun runs a workflow in a session of its own in memory, which is how its
// runner wants it, and returns the last output.
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
