package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// recorder is a tool that keeps the arguments of its calls.
func recorder(name, schema string, ran *[]string) agent.Middleware {
	return agent.Use(agent.Tool{Tool: llm.Tool{Name: name, Schema: json.RawMessage(schema)}, Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
		*ran = append(*ran, string(input))
		return agent.Result{Text: "done"}, nil
	}})
}

// TestTextCall has models write a call as text. They are told so once; a text about calls is an answer.
func TestTextCall(t *testing.T) {
	for _, text := range []string{
		`<tool_call>{"name": "look", "arguments": {"q": "a"}}</tool_call>`,
		"I will look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"q\": \"a\"}}\n</tool_call>\n",
		`<tool_call>{"name":"look","arguments":{"q":"a"}}`, // cut by a stop sequence
		`<tool_calls>[{"name":"look","arguments":{}}]</tool_calls>`,
		`<function=look>{"q": "a"}</function>`,
		"<tool_call>\n<function=look>\n<parameter=q>\na\n</parameter>\n</function>\n</tool_call>",
		`<function_calls><invoke name="look"><parameter name="q">a</parameter></invoke></function_calls>`,
		`[TOOL_CALLS][{"name": "look", "arguments": {"q": "a"}}]`,
		`[TOOL_CALLS]look{"q": "a"}`,
		`[TOOL_CALLS]look[ARGS]{"q": "a"}`,
		`<|python_tag|>{"name": "look", "parameters": {"q": "a"}}`,
		`<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"q":"a"}<|tool_call_end|>`,
		`{"name": "look", "arguments": {"q": "a"}}`,
		"```json\n{\"name\": \"look\", \"parameters\": {\"q\": \"a\"}}\n```",
	} {
		var ran []string
		model := script.New(script.Text(text), script.Call("look", `{"q":"a"}`), script.Text(text), script.Text("done"))
		_, err := stone.Run(t.Context(), agent.New("a", dag.NewType[agent.Text]("said"), model, agent.Config{User: agent.Say("x"), MaxTurns: 2, Use: []agent.Middleware{recorder("look", `{"type":"object"}`, &ran)}}), stone.Config{})
		reqs := model.Requests()
		if err != nil || len(ran) != 1 || len(reqs) != 4 {
			t.Errorf("%s: %d requests, ran %q, %v", text, len(reqs), ran, err)
			continue
		}
		if told := reqs[1].Messages[len(reqs[1].Messages)-1]; told.Role != llm.RoleUser || !strings.HasPrefix(told.Text(), `The call of the tool "look" was written as text, so it was not run.`) {
			t.Errorf("%s: told %q", text, told.Text())
		}
	}
	for _, text := range []string{
		`<tool_call>{"name": "other", "arguments": {}}</tool_call>`,
		"A call is written <tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>, as Qwen does.",
		`{"name": "look", "age": 7}`, `{"name": "Ada", "arguments": {}}`, "look", "done", `[{"name":"look"}]`,
		"The invoke element, <invoke name=\"look\">, has parameters.",
	} {
		var ran []string
		model := script.New(script.Text(text))
		_, err := stone.Run(t.Context(), agent.New("a", dag.NewType[agent.Text]("said"), model, agent.Config{User: agent.Say("x"), Use: []agent.Middleware{recorder("look", `{"type":"object"}`, &ran)}}), stone.Config{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A model that insists has given its answer.
	insists := `<tool_call>{"name":"look","arguments":{}}</tool_call>`
	model := script.New(script.Text(insists), script.Text(insists))
	var ran []string
	if _, err := stone.Run(t.Context(), agent.New("a", dag.NewType[agent.Text]("said"), model, agent.Config{User: agent.Say("x"), Use: []agent.Middleware{recorder("look", `{"type":"object"}`, &ran)}}), stone.Config{}); err != nil {
		t.Error(err)
	}
}

// TestMeantArguments has models write arguments that do not fit the schema of the tool, and that
// can mean one thing only.
func TestMeantArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"},"ok":{"type":"boolean"},"list":{"type":"array","items":{"type":"string"}},"at":{"type":"object","properties":{"x":{"type":"number"}}},
		"text":{"type":"string"},"either":{"type":["string","integer"]}},"required":["n"],"additionalProperties":false}`
	for _, c := range []struct{ input, ran string }{ // "" if the call is refused
		{`{"n":1}`, `{"n":1}`},
		{`{"n":"3"}`, `{"n":3}`},
		{`{"n":"-3","ok":"true"}`, `{"n":-3,"ok":true}`},
		{`{"n":1,"list":"[\"a\",\"b\"]"}`, `{"list":["a","b"],"n":1}`},
		{`{"n":1,"at":"{\"x\":1.5}"}`, `{"at":{"x":1.5},"n":1}`},
		{`{"n":1,"at":{"x":"1.5"}}`, `{"at":{"x":1.5},"n":1}`},
		{`{"n":1,"text":null,"list":null}`, `{"n":1}`},
		{`"{\"n\":1}"`, `{"n":1}`},
		{`{"arguments":{"n":"1"}}`, `{"n":1}`},
		{`{"parameters":"{\"n\":1}"}`, `{"n":1}`},
		{`{"n":"3","text":"4","either":"5"}`, `{"either":"5","n":3,"text":"4"}`},
		{`{"n":"three"}`, ""}, {`{"n":"1.5"}`, ""}, {`{"n":null}`, ""}, {`{"n":1,"text":7}`, ""}, {`{"n":1,"list":"a"}`, ""}, {`{"n":"1 2"}`, ""}, {`{"n":1,"ok":"yes"}`, ""}, {`{"other":{"n":1}}`, ""}, {`{"n":""}`, ""},
	} {
		var ran []string
		model := script.New(script.Call("look", c.input), script.Text("done"))
		stone.Run(t.Context(), agent.New("a", dag.NewType[agent.Text]("said"), model, agent.Config{User: agent.Say("x"), Use: []agent.Middleware{recorder("look", schema, &ran)}}), stone.Config{})
		told := model.Requests()[1].Messages
		if got := strings.Join(ran, " "); got != c.ran || (c.ran == "") != strings.Contains(told[len(told)-1].Text(), "do not fit the schema") {
			t.Errorf("%s: ran with %s, want %s; told %q", c.input, got, c.ran, told[len(told)-1].Text())
		}
	}
}
