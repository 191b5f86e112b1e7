package eval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/eval"
)

func ExampleRun() {
	type letter struct {
		Text string `json:"text"`
	}
	var (
		Letter = dag.NewType[letter]("letter")
		Area   = dag.NewType[string]("area")
	)
	sort := stone.Func("sort", Letter, Area, func(_ context.Context, l letter) (string, error) {
		if strings.Contains(l.Text, "invoice") {
			return "billing", nil
		}
		return "bug", nil
	})
	scorers, err := eval.Read(nil, "exact")
	if err != nil {
		panic(err)
	}
	report, err := eval.Run(context.Background(), eval.Config{
		Pipeline: sort,
		Scorers:  scorers,
		Data: eval.Data{Rows: []any{
			map[string]string{"text": "My invoice is missing.", "expected": "billing"},
			map[string]string{"text": "The page is blank.", "expected": "bug"},
			map[string]string{"text": "You charged me twice.", "expected": "billing"},
		}},
	}, stone.Config{})
	if err != nil {
		panic(err)
	}
	s := report.Scores[0]
	fmt.Printf("%s: %.2f of %d, 95 %% between %.2f and %.2f\n", s.Name, s.Mean, s.N, s.Low, s.High)
	// Output: exact: 0.67 of 3, 95 % between 0.21 and 0.94
}

// A small model is right about short texts, and marks other answers as unsure. The tuning puts the small model first, with a
// score-min that unsure answers do not reach. This reduces the cost.
func ExampleTuning() {
	type text struct {
		Text string `json:"text"`
	}
	var (
		Asked = dag.NewType[text]("asked")
		Said  = dag.NewType[string]("said")
	)
	model := func(id string, usd float64, longest int) call.Capability {
		return call.Func(call.Metadata{ID: id, Intents: []string{"shout"}, Cost: call.Cost{USD: usd}}, func(_ context.Context, in any) (any, error) {
			s := in.(map[string]any)["text"].(string)
			if len(s) > longest {
				return s + "?", nil
			}
			return strings.ToUpper(s), nil
		})
	}
	app := &call.Applicator{
		Registry: call.NewRegistry(model("large", 0.01, 100), model("small", 0.001, 5)),
		Checks: map[string]call.Check{"sure": func(_ context.Context, s call.Subject) error {
			if strings.Contains(string(s.Out), "?") {
				return errors.New("it asks back")
			}
			return nil
		}},
	}
	spec := call.Spec{
		Applicator: app, Intent: "shout", Input: call.From(Asked),
		Dispatch: call.Dispatch{Candidates: []string{"large", "small"}}, Done: call.Done{Should: []string{"sure"}},
	}
	cascade, err := app.Tunable(spec)
	if err != nil {
		panic(err)
	}
	scorers, err := eval.Read(nil, "exact")
	if err != nil {
		panic(err)
	}
	choice, err := eval.Tuning{
		Data: eval.Data{Rows: []any{
			map[string]string{"text": "go", "expected": "GO"},
			map[string]string{"text": "stop", "expected": "STOP"},
			map[string]string{"text": "continue", "expected": "CONTINUE"},
			map[string]string{"text": "wait", "expected": "WAIT"},
		}},
		Scorer: scorers[0], USDPerCase: 0.005,
		Call: Said.Name(), Cascade: cascade,
		Alone: func(candidate string) (stone.Ashlar, error) {
			alone := spec
			alone.Cap, alone.Dispatch.Candidates, alone.Done.ScoreMin = candidate, nil, new(0.0)
			return call.New("say", Said, alone), nil
		},
	}.Run(context.Background(), stone.Config{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v from a score of %v: mean %v at $%.4f, before $%.4f\n", choice.Candidates, choice.ScoreMin, choice.Mean, choice.USD, choice.Before.USD)
	// Output: [small large] from a score of 1: mean 1 at $0.0035, before $0.0100
}

// A prompt is revised by a capability. Here the capability is a function that always makes the same change.
func ExampleImproving() {
	question := dag.NewType[string]("question")
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		if strings.Contains(req.System, "Shout.") {
			return script.Text(strings.ToUpper(req.Messages[0].Text()))
		}
		return script.Text("What?")
	})
	pipeline := agent.New("say", dag.NewType[agent.Text]("said"), model, agent.Config{System: agent.Adjustable("how", "Answer."), User: question})
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "teacher"}, func(context.Context, any) (any, error) {
		return map[string]string{"why": "The answers are too quiet.", "prompt": "Answer. Shout."}, nil
	}))}
	var data eval.Data
	for i := range 40 {
		data.Rows = append(data.Rows, map[string]string{"question": fmt.Sprint("word ", i), "expected": fmt.Sprint("WORD ", i)})
	}
	scorers, err := eval.Read(nil, "exact")
	if err != nil {
		panic(err)
	}
	if err := improve(context.Background(), pipeline, data, scorers[0], app, person("accept")); err != nil {
		panic(err)
	}
	// Output: true true
}

func improve(ctx context.Context, pipeline stone.Ashlar, data eval.Data, exact eval.Scorer, app *call.Applicator, person ask.Frontend) error {
	revision, err := eval.Improving{
		Program: pipeline, Data: data, Scorer: exact, Applicator: app, By: "teacher",
	}.Run(ctx, stone.Config{Frontend: person})
	if err != nil {
		return err
	}
	fmt.Println(revision.Better(), revision.Accepted)
	return nil
}
