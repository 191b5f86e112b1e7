package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

type Sum struct {
	Text string `json:"text"`
}

var (
	Task   = dag.NewType[string]("task")
	Result = dag.NewType[Sum]("result")
)

// A small capability is invoked first. A check rejects its answer, so a larger capability is invoked.
func Example() {
	small := call.Func(call.Metadata{ID: "model/small", Cost: call.Cost{USD: 0.001}}, func(context.Context, string) (Sum, error) {
		return Sum{"2 + 2 is five, I believe"}, nil
	})
	large := call.Func(call.Metadata{ID: "model/large", Cost: call.Cost{USD: 0.05}}, func(context.Context, string) (Sum, error) {
		return Sum{"2 + 2 = 4"}, nil
	})
	app := &call.Applicator{
		Registry: call.NewRegistry(large, small),
		Checks: map[string]call.Check{"ends-in-a-number": func(_ context.Context, s call.Subject) error {
			var sum Sum
			if err := json.Unmarshal(s.Out, &sum); err != nil {
				return err
			}
			if _, err := strconv.Atoi(sum.Text[strings.LastIndex(sum.Text, " ")+1:]); err != nil {
				return errors.New("it does not end in a number")
			}
			return nil
		}},
	}
	answer := call.New("answer", Result, call.Spec{
		Applicator: app,
		Intent:     "math/solve",
		Input:      call.From(Task),
		Done:       call.Done{Must: []string{"ends-in-a-number"}},
	})

	d, err := Task.Append(dag.DAG{}, "What is 2 + 2?")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := budget.With(context.Background(), budget.New(budget.Limits{USD: new(1.0)}))
	res, err := stone.Run(ctx, answer, stone.Config{Input: d})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Node.Text())
	for _, a := range call.RecordOf(res.Node).Tried {
		fmt.Printf("%s: %q\n", a.Cap, a.Failure)
	}
	fmt.Printf("%.3f USD\n", budget.From(ctx).Spent().USD)
	// Output:
	// 2 + 2 = 4
	// model/small: "eval/must-failed"
	// model/large: ""
	// 0.051 USD
}

// A check at the door rejects an input that no capability should see.
func ExampleAdmit() {
	app := &call.Applicator{Checks: map[string]call.Check{"no-card": func(_ context.Context, s call.Subject) error {
		if regexp.MustCompile(`[0-9]{16}`).Match(s.Out) {
			return errors.New("it has the number of a card")
		}
		return nil
	}}}
	door := call.Admit("door", app, call.From(Task), call.Done{Must: []string{"no-card", "non-empty"}})

	for _, text := range []string{"What is 2 + 2?", "Is 4242424242424242 prime?"} {
		_, err := stone.Run(context.Background(), door, stone.Config{Input: dag.Of(Task.With(text))})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// input/rejected at door: no-card: it has the number of a card
}

func ExampleApplicator_Act() {
	app := &call.Applicator{Registry: call.NewRegistry(
		call.Func(call.Metadata{ID: "bot/fern"}, func(_ context.Context, in struct{ Prompt string }) (Sum, error) {
			return Sum{"You asked: " + in.Prompt}, nil
		}),
	)}
	trace, spec, err := call.ReadRequest([]byte(`
		{:proto 1
		 :trace {:id "g-1"}
		 :task  {:intent :garden/advise :dispatch {:candidates [:bot/fern]}}
		 :input {:prompt "Frost tonight?"}
		 :done  {:must #{:non-empty}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	response, _ := app.Act(context.Background(), trace, spec, stone.Config{})
	fmt.Println(string(response.Reply.Out))
	// Output: {"text":"You asked: Frost tonight?"}
}
