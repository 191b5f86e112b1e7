package answers_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/stonetest"
)

const flat = `{"id": "q1", "model": "small", "text": "four", "usage": {"input_tokens": 7, "output_tokens": 9}, "latency": 120.5}

{"id": "q1", "model": "large", "text": "4", "usage": {"prompt_tokens": 8, "completion_tokens": 10}}
{"id": "q2", "model": "small", "text": "{\"n\": 5}", "answer": 5}
{"id": "q3", "model": "small"}
{"id": "q5", "model": "small", "text": " "}
`

const nested = `{"question": "2 and 2? ", "set": {"name": "sums", "no": 1}, "answer": "4", "responses": {"small": {"text": "five"}, "large": {"text": "four"}}}
{"question": "3 and 3?", "set": {"name": "sums", "no": 2}, "responses": {"large": {"text": "six"}}}
`

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func ask(t *testing.T, c answers.Config, m call.Metadata, input string, s *schema.Schema) (*call.Reply, error) {
	t.Helper()
	return answers.New(m, c).Invoke(t.Context(), &call.Request{Intent: "sum", Input: call.JSON(input), Schema: s})
}

func TestAnswers(t *testing.T) {
	flatly, deep := write(t, flat), write(t, nested)
	large := answers.Path{"responses", "large", "text"}
	for name, tc := range map[string]struct {
		config      answers.Config
		input, want string
	}{
		"of a model":          {answers.Config{File: flatly, Model: "small"}, `{"id": "q1", "prompt": "2 and 2?"}`, `{"text":"four"}`},
		"of another":          {answers.Config{File: flatly, Model: "large"}, `{"id":" q1 "}`, `{"text":"4"}`},
		"by the question":     {answers.Config{File: deep, Text: large, Key: answers.Key{"prompt": {"question"}}}, `{"prompt":"2 and 2?"}`, `{"text":"four"}`},
		"of an escaped name":  {answers.Config{File: write(t, `{"id": 1, "model": "lab\/m", "text": "one"}`), Model: "lab/m"}, `{"id":1}`, `{"text":"one"}`},
		"by an equal number":  {answers.Config{File: write(t, `{"id": 1.0, "text": "one"}`)}, `{"id":1}`, `{"text":"one"}`},
		"by a field and more": {answers.Config{File: deep, Text: large, Key: answers.Key{"set": {"set", "name"}, "no": {"set", "no"}}}, `{"set":"sums","no":2}`, `{"text":"six"}`},
	} {
		reply, err := ask(t, tc.config, call.Metadata{}, tc.input, nil)
		if err != nil || string(reply.Out) != tc.want {
			t.Errorf("%s: got %+v, %v; want %s", name, reply, err, tc.want)
		}
	}
	number, err := schema.Parse([]byte(`{"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := ask(t, answers.Config{File: flatly, Model: "small"}, call.Metadata{}, `{"id":"q2"}`, number)
	var got struct{ N int }
	if err != nil || json.Unmarshal(reply.Out, &got) != nil || got.N != 5 {
		t.Errorf("an answer in JSON: %+v, %v", reply, err)
	}
}

func TestUsage(t *testing.T) {
	file, price := write(t, flat), call.Metadata{Cost: call.Cost{Price: budget.Price{In: 1, Out: 1}}}
	for model, want := range map[string]call.Usage{
		"small": {Usage: budget.Usage{InputTokens: 7, OutputTokens: 9, USD: 16e-6}, LatencyMS: 120, Mode: llm.Replay},
		"large": {Usage: budget.Usage{InputTokens: 8, OutputTokens: 10, USD: 18e-6}, Mode: llm.Replay},
	} {
		reply, err := ask(t, answers.Config{File: file, Model: model}, price, `{"id":"q1"}`, nil)
		if err != nil || reply.Usage != want {
			t.Errorf("%s: %+v, %v; want %+v", model, reply.Usage, err, want)
		}
	}
	reply, err := ask(t, answers.Config{File: file, Model: "small"}, price, `{"id":"q2"}`, nil)
	if u := reply.Usage; err != nil || !u.Estimated || u.OutputTokens != 2 || u.InputTokens == 0 {
		t.Errorf("without a usage: %+v, %v; want an estimate", reply.Usage, err)
	}
}

func TestUnknownQuestion(t *testing.T) {
	file := write(t, flat)
	for input, want := range map[string][2]string{
		`{"id":"q4"}`: {reasons.NotRecorded, file + ` has no answer to {"id":"q4"}; the nearest one, in line 1, differs at byte 8: got "{\"id\":\"q4\"}", recorded "{\"id\":\"q1\"}"`},
		`{"id":"q3"}`: {reasons.NotRecorded, file + ` has no answer to {"id":"q3"}; the nearest one, in line 1, differs`},
		`{"id":"q5"}`: {reasons.FormatDrift, "the answer in line 6 of " + file + " is empty"},
		`{"ID":"q1"}`: {reasons.InputInvalid, `the input has no field "id", which selects the answer in ` + file},
		`"q1"`:        {reasons.InputInvalid, `the input is not an object`},
	} {
		_, err := ask(t, answers.Config{File: file, Model: "small"}, call.Metadata{}, input, nil)
		var e *call.Error
		if !errors.As(err, &e) || e.Type != want[0] || !strings.HasPrefix(e.Message, want[1]) {
			t.Errorf("%s: %v; want %s: %s", input, err, want[0], want[1])
		}
	}
}

func TestBadFile(t *testing.T) {
	for _, tc := range []struct {
		text, want string
		config     answers.Config
	}{
		{"", "has no answers with the text at \"text\"", answers.Config{}},
		{flat, `has no answers with the text at "text" and the model "tiny"`, answers.Config{Model: "tiny"}},
		{flat, `has no answers with the text at "responses.a.text"`, answers.Config{Text: answers.Path{"responses", "a", "text"}}},
		{flat, `:3: it answers the same question as line 1: {"id":"q1"}`, answers.Config{}},
		{"{}\n[1]\n", ":2: ", answers.Config{}},
		{`{"text": "a"}`, ":1: the row has no id, which is part of its key", answers.Config{}},
		{`{"id": 1, "text": 5}`, ":1: text is not a string: ", answers.Config{}},
		{`{"id": 1, "text": "a", "latency": -1}`, ":1: latency: want milliseconds", answers.Config{}},
		{`{"id": 1, "text": "a", "usage": 3}`, ":1: usage: ", answers.Config{}},
	} {
		tc.config.File = write(t, tc.text)
		_, err := ask(t, tc.config, call.Metadata{}, `{"id":1}`, nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	for want, c := range map[string]answers.Config{
		"answers: no File":                 {},
		"no such file":                     {File: "there"},
		" is not a regular file":           {File: t.TempDir()},
		`answers: the key "a" has no path`: {File: "there", Key: answers.Key{"a": nil}},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	a, b := answers.Config{File: write(t, flat), Model: "small"}, answers.Config{File: write(t, flat+"\n"), Model: "small"}
	v, w := answers.New(call.Metadata{}, a), answers.New(call.Metadata{}, b)
	if v.ID != "small" || v.Kind != "answers" || v.Version == "" || v.Version == w.Version {
		t.Errorf("%+v and %+v: want different versions", v.Metadata, w.Metadata)
	}
}

func TestContract(t *testing.T) {
	file := write(t, flat)
	request := &call.Request{Intent: "sum", Input: call.JSON(`{"id":"q1"}`)}
	stonetest.TestCapability(t, stonetest.Capability{OK: request, Stream: request, Make: func(*testing.T) call.Capability {
		return answers.New(call.Metadata{}, answers.Config{File: file, Model: "small"})
	}})
}
