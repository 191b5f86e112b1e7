// Package cascade asks a small model first and, if checks reject its answer, a large model. The answers of both models are
// recorded:
//
//	go run ./cmd/stone run ./examples/cascade -- --data ./examples/cascade/testdata/five.jsonl
//
// Both models are capabilities for the same intent, and a gate of checks decides between them. The checks see the solution, but
// do not know the right answer: they reject a solution whose calculations are wrong, or that does not end with a plausible
// number.
package cascade

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/x/eval"
)

type (
	Question struct { // the data's column with this name
		Text string `json:"question"`
	}
	Text struct { // the answer of a model
		Text string `json:"text"`
	}
)

var (
	Asked    = dag.NewType[Question]("task")
	Solution = dag.NewType[Text]("solution")
	Chosen   = dag.NewType[Text]("choice")
)

// The two models. Prices are from early 2024, in USD per million tokens.
const small, large = "mixtral-8x7b-instruct-v0.1", "gpt-4-1106-preview"

var prices = map[string]budget.Price{small: {In: 0.6, Out: 0.6}, large: {In: 10, Out: 30}}

// Pipeline accepts the arguments --data FILE and --split dev or test.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("cascade", flag.ContinueOnError)
	data := flags.String("data", "", "the recorded answers, in JSON Lines")
	split := flags.String("split", "", "ask only one half of the questions: dev or test")
	err := flags.Parse(args)
	if err == nil && *data == "" {
		err = errors.New("want --data FILE after --, as in stone run ./examples/cascade -- --data ./examples/cascade/testdata/five.jsonl")
	}
	if err != nil {
		return stone.Ashlar{}, err
	}
	app := &call.Applicator{Checks: map[string]call.Check{}}
	var must []string
	for name, check := range checks {
		app.Checks[name] = func(_ context.Context, s call.Subject) error {
			var said Text
			return cmp.Or(json.Unmarshal(s.Out, &said), check(said.Text))
		}
		must = append(must, name)
	}
	slices.Sort(must)
	var models []call.Capability
	for _, name := range []string{small, large} {
		from := answers.Config{File: *data, Key: answers.Key{"question": {"question"}}, Text: answers.Path{"responses", name, "text"}}
		if err := from.Verify(); err != nil {
			return stone.Ashlar{}, err
		}
		models = append(models, answers.New(call.Metadata{ID: name, Cost: call.Cost{Price: prices[name]}}, from))
	}
	app.Registry = call.NewRegistry(models...)
	ask := func(name string, must []string, candidates ...string) stone.Ashlar {
		return stone.Seq(name, call.New("solve", Solution, call.Spec{
			Applicator: app, Intent: "math/solve", Input: call.From(Asked), Done: call.Done{Must: must},
			Dispatch: call.Dispatch{Candidates: candidates, AllowFailure: true},
		}), choose)
	}
	return eval.Routing{
		Data:   eval.Data{File: *data, Split: *split, Expected: "responses"},
		Scorer: eval.Func("correct", correct),
		Routed: ask("cascade", must, small, large), LargeCap: large,
		Small: []stone.Ashlar{ask("small", nil, small)}, Large: ask("large", nil, large),
	}.Pipeline()
}

// choose returns the accepted solution or, if all were rejected, the last one.
var choose = stone.Func2("choose", dag.Maybe(Solution), dag.Maybe(call.Failed(Solution)), Chosen,
	func(_ context.Context, accepted *Text, refused *call.Record) (last Text, err error) {
		switch {
		case accepted != nil:
			return *accepted, nil
		case refused.Out == nil:
			return last, stone.Fail(reasons.FormatDrift, "no model answered: %s", refused.Error)
		}
		return last, json.Unmarshal(refused.Out, &last)
	})

// correct reports whether the chosen solution is right: the data contains a mark for each response.
func correct(_ context.Context, c eval.Case) (eval.Score, error) {
	var chosen Text
	var responses map[string]struct {
		Text
		Correct bool `json:"correct"`
	}
	if err := errors.Join(json.Unmarshal(c.Output, &chosen), json.Unmarshal(c.Expected, &responses)); err != nil {
		return eval.Score{}, err
	}
	for _, r := range responses {
		if strings.TrimSpace(r.Text.Text) == strings.TrimSpace(chosen.Text) && r.Correct {
			return eval.Score{Value: 1}, nil
		}
	}
	return eval.Score{Reason: fmt.Sprintf("%.60s", chosen.Text)}, nil
}
