package cascade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
)

// solve asks the small model and, if its answer does not pass the gate, the large
// one. The gate may refuse that answer too: it is then final, and marked as unsure.
func (e *exam) solve() stone.Ashlar {
	app := &call.Applicator{Checks: map[string]call.Check{}}
	var must []string
	for _, c := range checks {
		app.Checks[c.name] = ofText(c.fn)
		must = append(must, c.name)
	}
	replay := e.models()
	solver := func(name string) call.Capability {
		return model.New(
			call.Metadata{ID: name, Intents: []string{"math/solve"}, Out: call.TextAnswer, Cost: prices[name]},
			model.Config{Model: replay(name), Prompt: "Solve the problem step by step. End with #### and the answer as a number."})
	}
	app.Registry = call.NewRegistry(solver(small), solver(large))
	return call.New("solve", Solution, call.Spec{
		Applicator: app,
		Intent:     "math/solve",
		Input:      dag.Derive(Asked, func(q Question) any { return map[string]string{"prompt": q.Text} }),
		Dispatch:   call.Dispatch{Candidates: []string{small, large}, AllowFailure: true},
		Done:       call.Done{Must: must},
	})
}

// ofText makes a check of a call from a check of a text, which sees nothing else.
func ofText(fn func(string) error) call.Check {
	return func(_ context.Context, s call.Subject) error {
		var said Text
		if err := json.Unmarshal(s.Out, &said); err != nil {
			return err
		}
		return fn(said.Text)
	}
}

// choose returns the final answer: the accepted one, or else the last.
func choose() stone.Ashlar {
	failed := call.Failed(Solution)
	return stone.New("choose", Chosen, func(_ context.Context, d dag.DAG) (Choice, error) {
		q, err := Asked.From(d)
		if err != nil {
			return Choice{}, err
		}
		rec, unsure, err := recordOf(d, failed)
		if err != nil {
			return Choice{}, fmt.Errorf("question %s: %w", q.ID, err)
		}
		return Choice{
			Question: q.ID, Model: rec.Cap, Unsure: unsure, CostUSD: rec.Usage.USD,
			AskedLarge: rec.Tried[len(rec.Tried)-1].Cap == large, Refused: rec.Tried[0].MustFailed,
		}, nil
	}, stone.Queries(Asked, dag.Maybe(Solution), dag.Maybe(failed)))
}

// recordOf returns the record of the call and whether the gate refused its last answer. A
// call without an answer is an error.
func recordOf(d dag.DAG, failed dag.Type[call.Record]) (rec *call.Record, unsure bool, err error) {
	n, err := d.Nearest(Solution.Name())
	if err == nil {
		if rec = call.RecordOf(n); rec == nil {
			return nil, false, errors.New("the solution has no record of its call")
		}
		return rec, false, nil
	}
	last, err := failed.From(d)
	if err != nil {
		return nil, false, err
	}
	if last.Out == nil {
		return nil, false, fmt.Errorf("no model answered: %s: %s", last.Failure, last.Error)
	}
	return &last, true, nil
}
