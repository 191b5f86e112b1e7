package bench

import (
	"context"

	"encoding/json"
	"iter"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// alike has the schema of small but is another Go type, so that a validator must compare
// the two.
type alike small

var (
	smallDoc = dag.NewType[small]("doc")
	alikeDoc = dag.NewType[alike]("doc")
	aBatch   = dag.NewType[batch]("batch")
	anItem   = dag.NewType[item]("item")
	aResult  = dag.NewType[result]("result")
	aTotal   = dag.NewType[total]("total")
	anAnswer = dag.NewType[agent.Text]("answer")
)

// stoneLine is a sequence of steps that read one type and write another, usually the
// same.
func stoneLine[In, Out any](names []string, read dag.Type[In], write dag.Type[Out], first Out, next func(context.Context, In) (Out, error)) stone.Ashlar {
	steps := make([]stone.Ashlar, len(names))
	steps[0] = stone.Func0(names[0], write, func(context.Context) (Out, error) { return first, nil })
	for i, name := range names[1:] {
		steps[i+1] = stone.Func(name, read, write, next)
	}
	return stone.Seq("line", steps...)
}

func stoneSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	doc := dag.NewType[T]("doc")
	line := stoneLine(stepNames(steps), doc, doc, first.next(), func(_ context.Context, v T) (T, error) { return v.next(), nil })
	return func() (T, error) {
		res, err := stone.Run(context.Background(), line, stone.Config{})
		if err != nil {
			var none T
			return none, err
		}
		return doc.Of(res.Node)
	}, nil
}

func stoneBuild(names []string) error {
	line := stoneLine(names, smallDoc, smallDoc, aSmall, func(_ context.Context, v small) (small, error) { return v, nil })
	return stone.Validate(line, stone.Given{}).Err()
}

func stoneBuildSchemas(names []string) error {
	line := stoneLine(names, alikeDoc, smallDoc, aSmall, func(_ context.Context, v alike) (small, error) { return small(v), nil })
	return stone.Validate(line, stone.Given{}).Err()
}

// stoneFan ends with the reducer that every fan-out needs. It reads all results, as a
// program would.
func stoneFan(lanes int) stone.Ashlar {
	return stone.Seq("fan-out",
		stone.Func0("split", aBatch, func(context.Context) (batch, error) { return batch{Lanes: lanes}, nil }),
		stone.Map("lanes", dag.Derive(aBatch, batch.items), anItem,
			stone.Func("work", anItem, aResult, func(_ context.Context, it item) (result, error) { return it.work(), nil })),
		stone.Reduce(stone.Func("count", dag.Lanes(aResult), aTotal, func(_ context.Context, all []result) (total, error) {
			return total{Lanes: len(all)}, nil
		})),
	)
}

func stoneFanOut(lanes int) (func() (int, error), error) {
	p := stoneFan(lanes)
	return func() (int, error) {
		res, err := stone.Run(context.Background(), p, stone.Config{})
		if err != nil {
			return 0, err
		}
		sum, err := aTotal.Of(res.Node)
		return sum.Lanes, err
	}, nil
}

// stoneModel returns complete answers, like a model that does not stream.
type stoneModel struct {
	*script
	call, final *llm.Reply
}

func (m *stoneModel) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	reply := m.call
	if m.over() {
		reply = m.final
	}
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil) }
}

// stoneTurns checks the input of the tool against its schema, and records
// conversation and answer in a node.
func stoneTurns(s *script) (func() (string, error), error) {
	m := &stoneModel{s,
		&llm.Reply{ToolCalls: []llm.ToolCall{{ID: "call_0", Name: toolName, Input: json.RawMessage(callInput)}}},
		&llm.Reply{Text: finalText, StopReason: "stop"},
	}
	look := agent.Tool{
		Tool: llm.Tool{Name: toolName, Description: toolText, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		Run:  func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{Text: s.look()}, nil },
	}
	a := agent.New("look", anAnswer, m, agent.Config{
		System: agent.Say(systemText), User: agent.Say(userText), Use: []agent.Middleware{agent.Use(look)}, MaxTurns: s.calls + 1,
	})
	return func() (string, error) {
		res, err := stone.Run(context.Background(), a, stone.Config{})
		if err != nil {
			return "", err
		}
		answer, err := anAnswer.Of(res.Node)
		return answer.Text, err
	}, nil
}
