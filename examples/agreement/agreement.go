// Package agreement asks two or more small models what a Python function returns and, if they disagree, a large model. The models
// are recorded: a file contains the answers of each.
//
//	go run ./cmd/stone run ./examples/agreement -- --data ./examples/agreement/testdata/five.jsonl \
//		--small a,b --large c
//
// Each row has the columns id, code, input, answer and responses; responses contains the text of each model. Only the scorer reads
// the answer: neither the call nor the capabilities have it in their input.
package agreement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/x/eval"
)

// Question is the input of a model. It consists of the data's columns with these names.
type Question struct {
	Code  string `json:"code"`
	Input string `json:"input"`
}

// Text is the answer of a model.
type Text struct {
	Text string `json:"text"`
}

var (
	Asked = dag.NewType[Question]("question")
	Said  = dag.NewType[Text]("said")
)

// prices are list prices of 2024 in USD per million tokens. Other models are free.
var prices = map[string]budget.Price{
	"gpt-4o-mini-2024-07-18": {In: 0.15, Out: 0.6}, "gemini-1.5-flash": {In: 0.075, Out: 0.3}, "claude-3-haiku-20240307": {In: 0.25, Out: 1.25},
	"gpt-4o-2024-08-06": {In: 2.5, Out: 10}, "o1-mini-2024-09-12": {In: 3, Out: 12},
}

// Pipeline accepts the arguments --data FILE, --small MODEL,MODEL and --large MODEL.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("agreement", flag.ContinueOnError)
	data := flags.String("data", "", "the recorded answers, in JSON Lines")
	names := flags.String("small", "gpt-4o-mini-2024-07-18,gemini-1.5-flash", "the models that must agree")
	large := flags.String("large", "gpt-4o-2024-08-06", "the model that is asked if they disagree")
	if err := flags.Parse(args); err != nil {
		return stone.Ashlar{}, err
	}
	small := strings.Split(*names, ",")
	if *data == "" || len(small) < 2 {
		return stone.Ashlar{}, errors.New("want --data FILE and two small models after --, as in stone run ./examples/agreement -- --data ./examples/agreement/testdata/five.jsonl --small a,b --large c")
	}
	app := &call.Applicator{Checks: map[string]call.Check{"settled": settled}}
	var models []call.Capability
	for _, name := range append(small, *large) {
		from := answers.Config{File: *data, Key: answers.Key{"code": {"code"}, "input": {"input"}}, Text: answers.Path{"responses", name, "text"}}
		if err := from.Verify(); err != nil {
			return stone.Ashlar{}, fmt.Errorf("%s: %w", name, err)
		}
		models = append(models, answers.New(call.Metadata{ID: name, Cost: call.Cost{Price: prices[name]}}, from))
	}
	app.Registry = call.NewRegistry(models...)
	ask := func(name string, d call.Dispatch) stone.Ashlar {
		return call.New(name, Said, call.Spec{Applicator: app, Intent: "python/predict", Input: call.From(Asked), Dispatch: d, Done: call.Done{Must: []string{"settled"}}})
	}
	r := eval.Routing{Data: eval.Data{File: *data, Expected: "answer"}, Scorer: eval.Func("value", score), LargeCap: *large}
	r.Routed = ask("agreement", call.Dispatch{Strategy: call.Agreement, Candidates: append(small, *large), Agree: &call.Agree{First: len(small), Check: "settled"}})
	r.Large = ask(*large, call.Dispatch{Candidates: []string{*large}})
	for _, name := range small {
		r.Small = append(r.Small, ask(name, call.Dispatch{Candidates: []string{name}}))
	}
	return r.Pipeline()
}

// settled checks an answer, or a list of answers: each must have a value, and all values must be equal.
func settled(_ context.Context, s call.Subject) error {
	all := make([]Text, 1)
	if json.Unmarshal(s.Out, &all[0]) != nil {
		if err := json.Unmarshal(s.Out, &all); err != nil {
			return err
		}
	}
	first, err := value(all[0].Text)
	for _, said := range all[1:] {
		other, failed := value(said.Text)
		if err = cmp.Or(err, failed); err == nil && other != first {
			return fmt.Errorf("%s is not %s", other, first)
		}
	}
	return err
}

// score compares an answer with the expected one.
func score(_ context.Context, c eval.Case) (eval.Score, error) {
	var want string
	var said Text
	if err := errors.Join(json.Unmarshal(c.Expected, &want), json.Unmarshal(c.Output, &said)); err != nil {
		return eval.Score{}, err
	}
	if got, _ := value(said.Text); got != literal(want) {
		return eval.Score{Reason: fmt.Sprintf("got %s, want %s", got, want)}, nil
	}
	return eval.Score{Value: 1}, nil
}
