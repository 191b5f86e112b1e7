// Package codegate asks a small model for a Python function and, if the function fails its visible tests, a large model. Hidden
// tests decide whether the result is right. The models are recorded. Their programs run in a sandbox, where they cannot use the
// network and can write only to a temporary directory.
//
//	go run ./cmd/stone run ./examples/codegate -- --data ./examples/codegate/testdata/five.jsonl \
//		--small small --large large
//
// Each row has the columns id, prompt, entry_point, visible_tests, hidden_test and responses; responses contains the text of each
// model. Only the scorer reads the hidden test.
package codegate

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/x/eval"
)

const python = "/usr/bin/python3" // the only interpreter that is visible in the sandbox

// Task is the input of a model. It consists of the data's columns with these names.
type Task struct {
	ID         string   `json:"id"`
	Prompt     string   `json:"prompt"`
	EntryPoint string   `json:"entry_point"`
	Tests      []string `json:"visible_tests"`
}

// Program is the answer of a model.
type Program struct {
	Text string `json:"text"`
}

var Asked, Written = dag.NewType[Task]("task"), dag.NewType[Program]("program")

// prices are list prices of late 2023 in USD per million tokens. Other models are free.
var prices = map[string]budget.Price{"gpt-3.5-turbo-0613": {In: 1.5, Out: 2}, "gpt-4-1106-preview": {In: 10, Out: 30}}

// Pipeline accepts the arguments --data FILE, --small MODEL and --large MODEL.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("codegate", flag.ContinueOnError)
	data := flags.String("data", "", "the recorded programs, in JSON Lines")
	small := flags.String("small", "gpt-3.5-turbo-0613", "the model that is asked first")
	large := flags.String("large", "gpt-4-1106-preview", "the model that is asked if the visible tests fail")
	err := flags.Parse(args)
	if err == nil && *data == "" {
		err = errors.New("want --data FILE after --, as in stone run ./examples/codegate -- --data ./examples/codegate/testdata/five.jsonl --small small --large large")
	}
	if err == nil {
		_, err = os.Stat(python)
	}
	if err == nil {
		_, err = sandbox.Find()
	}
	if err != nil {
		return stone.Ashlar{}, err
	}
	var models []call.Capability
	for _, name := range []string{*small, *large} {
		from := answers.Config{File: *data, Text: answers.Path{"responses", name, "text"}}
		if err := from.Verify(); err != nil {
			return stone.Ashlar{}, fmt.Errorf("%s: %w", name, err)
		}
		models = append(models, answers.New(call.Metadata{ID: name, Cost: call.Cost{Price: prices[name]}}, from))
	}
	app := &call.Applicator{
		Registry: call.NewRegistry(models...), Checks: map[string]call.Check{"visible-tests": call.Paid("visible-tests", visible)},
		CheckFacts: map[string]call.CheckFacts{"visible-tests": {Needs: []string{effect.Process}, Costly: true}},
	}
	ask := func(name string, must []string, candidates ...string) stone.Ashlar {
		return call.New(name, Written, call.Spec{Applicator: app, Intent: "python/write", Input: call.From(Asked), Dispatch: call.Dispatch{Candidates: candidates}, Done: call.Done{Must: must}})
	}
	return eval.Routing{
		Data: eval.Data{File: *data, Expected: "hidden_test"}, Scorer: eval.Func("hidden-tests", hidden, stone.Effects(effect.Process)),
		Routed: ask("codegate", []string{"visible-tests"}, *small, *large), LargeCap: *large,
		Small: []stone.Ashlar{ask(*small, nil, *small)}, Large: ask(*large, nil, *large),
	}.Pipeline()
}

// visible is the check that runs the tests of the task.
func visible(ctx context.Context, s call.Subject) error {
	task, program := Task{}, Program{}
	if err := errors.Join(json.Unmarshal(s.Request.Input, &task), json.Unmarshal(s.Out, &program)); err != nil {
		return err
	}
	return run(ctx, program.Text, strings.Join(task.Tests, "\n"))
}

// hidden is the scorer that runs the hidden test, which defines the function check.
func hidden(ctx context.Context, c eval.Case) (eval.Score, error) {
	task, program, test := Task{}, Program{}, ""
	if err := errors.Join(json.Unmarshal(c.Input, &task), json.Unmarshal(c.Output, &program), json.Unmarshal(c.Expected, &test)); err != nil {
		return eval.Score{}, err
	}
	err := run(ctx, program.Text, test, "check("+task.EntryPoint+")")
	switch {
	case err == nil:
		return eval.Score{Value: 1}, nil
	case errors.As(err, new(*sandbox.ExitError)) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return eval.Score{Reason: err.Error()}, nil
	}
	return eval.Score{}, err // the program did not run
}

// run runs a program in the sandbox. It returns the reason why the program failed or did not start.
func run(ctx context.Context, parts ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	limits := sandbox.Policy{Limits: sandbox.Limits{CPU: 5 * time.Second, Memory: 512 << 20, Processes: 4, FileSize: 1 << 20}}
	cmd := sandbox.Command(ctx, limits, python, "-I", "-")
	cmd.Stdin = strings.NewReader(strings.Join(parts, "\n"))
	out, err := cmd.Output(64 << 10)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil {
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return nil
}
