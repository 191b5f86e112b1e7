package stonetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
)

// Text returns an answer that consists of the text.
func Text(text string) script.Answer { return script.Text(text) }

// JSON returns an answer that consists of v encoded as JSON, for agents whose result has a schema.
func JSON(v any) script.Answer { return script.JSON(v) }

// Call returns an answer that calls the named tool with input, a JSON value.
func Call(tool, input string) script.Answer { return script.Call(tool, input) }

// Multi combines several answers into one, which has all their texts and all their calls, each in order.
//
//	Multi(Text("Let me look."), Call("read_file", `{"path":"go.mod"}`), Call("list", `{}`))
func Multi(parts ...script.Answer) script.Answer {
	var all script.Answer
	var errs []error
	for _, p := range parts {
		all.Reply.Text += p.Reply.Text
		all.Reply.Reasoning += p.Reply.Reasoning
		all.Reply.Refusal += p.Reply.Refusal
		all.Reply.ToolCalls = append(all.Reply.ToolCalls, p.Reply.ToolCalls...)
		all.Reply.Usage = all.Reply.Usage.Add(p.Reply.Usage)
		if p.Reply.StopReason != "" {
			all.Reply.StopReason = p.Reply.StopReason
		}
		all.Wait += p.Wait
		errs = append(errs, p.Err)
	}
	all.Err = errors.Join(errs...)
	return all
}

// checkAnswer returns an error if no model could give the answer, and nil otherwise.
func checkAnswer(a script.Answer) error {
	for _, c := range a.Reply.ToolCalls {
		if c.Name == "" {
			return errors.New("a call without the name of a tool")
		}
		if c.Input != nil && !json.Valid(c.Input) {
			return fmt.Errorf("the input of %s is not JSON: %s", c.Name, c.Input)
		}
	}
	return nil
}

// Run runs p, a pipeline or a part of one that needs no model, on the input nodes and returns the result. If the run fails, the
// test fails at once.
func Run(t testing.TB, p stone.Ashlar, inputs ...dag.Value) stone.Result {
	t.Helper()
	res, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(inputs...)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return res
}

// Nearest returns the value of the nearest node of type typ in d, which is often the result of a run. If d has no node of this
// type, the test fails at once.
func Nearest[T any](t testing.TB, typ dag.Type[T], d dag.DAG) T {
	t.Helper()
	v, err := typ.From(d)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}
