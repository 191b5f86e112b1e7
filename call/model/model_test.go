package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/stonetest"
)

func Example() {
	poet := model.New(call.Metadata{ID: "model/poet"}, model.Config{
		Model:   script.New(script.Text("Heavy dough, warm oven.")),
		Prompt:  "You are a baker.",
		Intents: map[string]string{"text/haiku": "Answer in one line."},
	})
	reply, err := poet.Invoke(context.Background(), &call.Request{Intent: "text/haiku", Input: call.JSON(`{"prompt":"Bread?"}`)})
	fmt.Println(string(reply.Out), err)
	// Output: {"text":"Heavy dough, warm oven."} <nil>
}

// slow is a model that says nothing for a long time.
type slow struct{}

func (slow) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		select {
		case <-ctx.Done():
			yield(llm.Delta{}, ctx.Err())
		case <-time.After(time.Minute):
		}
	}
}

// either asks slow for requests that say so.
type either struct{ *script.Model }

func (e either) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	if strings.Contains(req.Messages[0].Text(), "slow") {
		return slow{}.Stream(ctx, req)
	}
	return e.Model.Stream(ctx, req)
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability {
			always := script.Func(func(int, *llm.Request) script.Answer { return script.Text("yes and no, or either of them") })
			return model.New(call.Metadata{}, model.Config{Model: either{always}})
		},
		OK:     &call.Request{Intent: "text/respond", Input: call.JSON(`{"prompt":"quick?"}`)},
		Slow:   &call.Request{Intent: "text/respond", Input: call.JSON(`{"prompt":"slow?"}`)},
		Stream: &call.Request{Intent: "text/respond", Input: call.JSON(`{"prompt":"quick?"}`)},
	})
}

var cake = must(schema.Parse([]byte(`{"type":"object","properties":{"cake":{"type":"string"}},"required":["cake"]}`)))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func schemas(name string) (*schema.Schema, bool) {
	if name == "res/cake" {
		return cake, true
	}
	return nil, false
}

func TestAnswers(t *testing.T) {
	const envelope = `{"proto":1,"trace":{"id":"r"},"result":{"type":"value","out":{"cake":"from an envelope"}}}`
	for _, test := range []struct{ requires, text, want string }{
		{"", "plain", `value {"text":"plain"}`},
		{"", "```go\nx\n```", "value {\"text\":\"```go\\nx\\n```\"}"},
		{"", `{"proto":1}`, `value {"text":"{\"proto\":1}"}`},
		{"", envelope, `value {"text":"{\"proto\":1,`},
		{"", "may " + envelope, `value {"cake":"from an envelope"}`},
		{"", "may ```\n" + envelope + "\n```", "value {\"text\":\"```\\n{"},
		{"", `may {"proto":1,"trace":{"id":"r"},"error":{"type":"oven/cold","message":"no gas"}}`, `format/drift: the model answered with an error: oven/cold: no gas`},
		{"res/cake", `{"cake":"sponge"}`, `value {"cake":"sponge"}`},
		{"res/cake", "Here it is:\n```json\n{\"cake\":\"sponge\"}\n```\nEnjoy!", `value {"cake":"sponge"}`},
		{"res/cake", "may ```json\n" + envelope + "\n```", `format/drift: the answer does not fit res/cake`},
		{"res/cake", `{"pie":1}`, `format/drift: the answer does not fit res/cake: `},
		{"res/cake", `I would rather not.`, `format/drift: the answer is not JSON, but "I would rather not."`},
		{"res/unknown", `{}`, `runtime/invoke-failed: the schema res/unknown is not known here`},
		{"plan", "```edn\n{:nodes [{:op :emit :input 1}]}\n```", `plan {:nodes [{:op :emit :input 1}]}`},
		{"plan", `{"nodes":[]}`, `plan {"nodes":[]}`},
		{"plan", `may {:proto 1 :trace {:id "r"} :result {:type :plan :plan {:nodes []}}}`, `plan {:nodes []}`},
		{"plan", `may {:result {:type :plan :plan {:nodes []}}}`, `plan {:nodes []}`},
		{"plan", `may {"proto":1,"result":{"type":"plan","plan":{"nodes":[]}}}`, `plan {"nodes":[]}`},
		{"", `may {"result":{"type":"order","id":7}}`, `value {"text":"{\"result\":`},
		{"plan", `First I would heat the oven.`, `format/drift: the answer is not a plan: `},
		{"plan", `{:steps []}`, `format/drift: the answer is not a plan: want a map with nodes`},
	} {
		req := &call.Request{Intent: "cake/bake", Input: call.JSON(`{"prompt":"?"}`)}
		if req.Requires.OutSchema = test.requires; test.requires == "plan" {
			req.Requires = call.Requires{Reply: call.Plan}
		}
		text, may := strings.CutPrefix(test.text, "may ")
		m, meta := script.New(script.Text(text), script.Text(text)), call.Metadata{}
		if may {
			meta.CanProduce = []string{call.Value, call.Plan}
		}
		reply, err := model.New(meta, model.Config{Model: m, Schema: schemas}).Invoke(t.Context(), req)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case reply.Type == call.Plan:
			got = "plan " + string(reply.Plan)
		default:
			got = reply.Type + " " + string(reply.Out)
		}
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s %.60q: %s, want %s", test.requires, test.text, got, test.want)
		}
	}
}

func TestRequest(t *testing.T) {
	m := script.New(script.Text("{\"cake\":\"x\"}"))
	cap := model.New(call.Metadata{Out: "res/cake"}, model.Config{
		Model: m, Name: "gpt-x", MaxTokens: 7, Prompt: " All. ", Role: "Baker.", Intents: map[string]string{"cake/bake": "Bake."}, Schema: schemas})
	req := &call.Request{Intent: "cake/bake", Input: call.JSON(`{"text":"a","lang":"en"}`), Context: call.JSON(`{"repair":{"checks":["c"]}}`), Constraints: call.JSON(`{}`)}
	if _, err := cap.Invoke(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	sent := m.Requests()[0]
	if want := "All.\n\nBaker.\n\nBake."; sent.System != want {
		t.Errorf("system %q, want %q", sent.System, want)
	}
	if got, want := sent.Messages[0].Text(), "{\"text\":\"a\",\"lang\":\"en\"}\n\nContext:\n{\"repair\":{\"checks\":[\"c\"]}}"; got != want {
		t.Errorf("question %q, want %q", got, want)
	}
	if sent.Model != "gpt-x" || sent.MaxTokens != 7 || sent.ResponseFormat == nil || sent.ResponseFormat.Name != "res_cake" {
		t.Errorf("%+v", sent)
	}
}

// TestRepair checks that a model may repair an answer once, if the budget pays for it.
func TestRepair(t *testing.T) {
	cut := func(text string) script.Answer {
		a := script.Text(text)
		a.Reply.StopReason = "length"
		return a
	}
	for _, test := range []struct {
		name     string
		requires string
		answers  []script.Answer
		budget   call.Budget
		want     string
		told     string // the last message to the model
		asked    int
	}{
		{"repaired", "res/cake", []script.Answer{script.Text(`{"pie":1}`), script.Text(`{"cake":"x"}`)}, call.Budget{}, `{"cake":"x"}`, "Your answer does not fit the schema", 2},
		{"once", "res/cake", []script.Answer{script.Text(`{"pie":1}`), script.Text(`{"pie":2}`)}, call.Budget{}, "format/drift: the answer does not fit res/cake", "Your answer does not fit the schema", 2},
		{"cut off", "res/cake", []script.Answer{cut(`{"cake":"x`), script.Text(`{"cake":"x"}`)}, call.Budget{}, `{"cake":"x"}`, "Your answer was cut off", 2},
		{"cut off twice", "", []script.Answer{cut(`Once upon`), cut(`Once`)}, call.Budget{}, "format/drift: the answer was cut off by the token limit", "Your answer was cut off", 2},
		{"too dear", "res/cake", []script.Answer{script.Text(`{"pie":1}`)}, call.Budget{Tokens: new(5)}, "format/drift: the answer does not fit res/cake", "?", 1},
	} {
		for i := range test.answers {
			test.answers[i].Reply.Usage = llm.Usage{InputTokens: new(4), OutputTokens: new(3)}
		}
		m := script.New(test.answers...)
		reply, err := model.New(call.Metadata{}, model.Config{Model: m, Schema: schemas}).Invoke(t.Context(),
			&call.Request{Input: call.JSON(`{"prompt":"?"}`), Requires: call.Requires{OutSchema: test.requires}, Budget: test.budget})
		got := ""
		if got = string(reply.Out); err != nil {
			got = err.Error()
		}
		sent := m.Requests()
		last := sent[len(sent)-1].Messages
		if !strings.HasPrefix(got, test.want) || len(sent) != test.asked || !strings.HasPrefix(last[len(last)-1].Text(), test.told) {
			t.Errorf("%s: %s after %d requests, told %q", test.name, got, len(sent), last[len(last)-1].Text())
		}
		if got := reply.Usage.Tokens(); got != 7*test.asked {
			t.Errorf("%s: %d tokens for %d requests of 7", test.name, got, test.asked)
		}
	}
}

// TestTyped checks that a capability without a schema of its own serves calls of any type: each
// request has the schema of the call.
func TestTyped(t *testing.T) {
	type verdict struct {
		Why string `json:"why"`
		OK  bool   `json:"ok"`
	}
	type note struct {
		Text string `json:"text"`
	}
	m := script.Func(func(_ int, req *llm.Request) script.Answer {
		switch f := req.ResponseFormat; {
		case f == nil:
			return script.Text("Hello.")
		case strings.Contains(string(f.Schema), `"score"`):
			return script.Text(`{"score":0.9}`)
		case strings.Contains(string(f.Schema), `"value"`):
			return script.Text(`{"value":[3,4]}`)
		}
		return script.Text("```json\n{\"why\":\"fresh\",\"ok\":true}\n```")
	})
	yes, most := true, 0.8
	app := &call.Applicator{
		Registry: call.NewRegistry(model.New(call.Metadata{ID: "model/all"}, model.Config{Model: m, Prompt: "You are a baker."})),
		Schemas:  map[string]*schema.Schema{"res/verdict": must(schema.For[verdict]()), "res/open": must(schema.Parse([]byte(`{"type":"object"}`)))},
		Intents:  map[string]call.Intent{"cake/judge": {Out: "res/verdict"}, "cake/any": {Out: "res/open"}, "text/respond": {Out: "res/text"}},
		Policy:   call.Policy{Default: call.Rules{Judge: call.Judge{On: &yes, Cap: "model/all"}, Done: call.Done{ScoreMin: &most}}},
	}
	for _, test := range []struct {
		intent   string
		requires string
		produces dag.AnyType
		want     string
	}{
		{"cake/any", "", dag.NewType[verdict]("verdict"), `{"ok":true,"why":"fresh"}`}, // more specific than that of the intent
		{"cake/judge", "", dag.NewType[call.JSON]("answer"), `{"ok":true,"why":"fresh"}`},
		{"cake/any", "res/verdict", dag.NewType[call.JSON]("answer"), `{"ok":true,"why":"fresh"}`},
		{"cake/any", "res/any", dag.NewType[[]int]("counts"), `[3,4]`},
		{"text/respond", "", dag.NewType[call.JSON]("answer"), `{"text":"Hello."}`},
		{"text/respond", "", dag.NewType[note]("note"), `{"text":"Hello."}`},
	} {
		p := call.New("ask", test.produces, call.Spec{Applicator: app, Intent: test.intent, Requires: call.Requires{OutSchema: test.requires},
			Input: call.From(dag.Derive(dag.Nothing, func(struct{}) map[string]string { return map[string]string{"prompt": "?"} }))})
		res, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Errorf("%s %s: %v", test.intent, test.requires, err)
			continue
		}
		if got := string(res.Node.Content()); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.intent, test.requires, got, test.want)
		}
	}
}

// heard joins the text that was streamed and not taken back.
func heard(r *eventtest.Recorder) string {
	said := ""
	for _, e := range r.Events() {
		switch d := e.Data.(type) {
		case event.Delta:
			if d.Kind == event.Text {
				said += d.Text
			}
		case event.Retracted:
			said = ""
		}
	}
	return said
}

func TestDeltasAndUsage(t *testing.T) {
	answer := script.Text("one two three")
	var r eventtest.Recorder
	m := script.New(answer)
	ctx := eventtest.Context(t.Context(), &r)
	reply, err := model.New(call.Metadata{}, model.Config{Model: m}).Invoke(ctx, &call.Request{
		Input: call.JSON(`{"text":"count"}`), Voice: event.At(ctx).Speak("m")})
	if got := heard(&r); err != nil || got != "one two three" {
		t.Errorf("heard %q, %v", got, err)
	}
	events := r.Events()
	asked, _ := events[0].Data.(event.ModelRequest)
	answered, _ := events[len(events)-1].Data.(event.ModelResponse)
	if asked.MessageCount != 1 || !answered.OK || answered.Reply.Text != "one two three" {
		t.Errorf("told %+v, %+v", asked, answered)
	}
	whole, err := llm.Collect(t.Context(), script.New(answer), &llm.Request{Messages: []llm.Message{llm.User("count")}})
	if err != nil {
		t.Fatal(err)
	}
	if reply.Usage.Mode != llm.Mock {
		t.Errorf("the mode of a script is %q", reply.Usage.Mode)
	}
	if n := whole.Usage.OutputTokens; n != nil && reply.Usage.OutputTokens != *n {
		t.Errorf("usage %+v, want %d tokens out", reply.Usage, *n)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err   error
		kind  string
		after time.Duration
	}{
		{&llm.HTTPError{Status: 429, RetryAfter: 3 * time.Second}, reasons.Unavailable, 3 * time.Second},
		{&llm.HTTPError{Status: 503}, reasons.Unavailable, 0},
		{&llm.HTTPError{Status: 400, Body: "bad"}, reasons.InvokeFailed, 0},
		{&llm.ConnectError{URL: "http://x", Err: errors.New("refused")}, reasons.Unavailable, 0},
		{errors.New("odd"), reasons.InvokeFailed, 0},
	} {
		m := script.New(script.Fail(test.err))
		_, err := model.New(call.Metadata{}, model.Config{Model: m}).Invoke(t.Context(), &call.Request{Input: call.JSON(`{"text":"x"}`)})
		var typed *call.Error
		if !errors.As(err, &typed) || typed.Type != test.kind || typed.RetryAfter != test.after || !errors.Is(err, test.err) {
			t.Errorf("%v: %v, want %s after %v", test.err, err, test.kind, test.after)
		}
	}
	if _, err := model.New(call.Metadata{}, model.Config{}).Invoke(t.Context(), &call.Request{}); err == nil || !strings.HasPrefix(err.Error(), "runtime/unavailable: model: no Model") {
		t.Error(err)
	}
	m := script.New(script.Text("x"))
	if _, err := model.New(call.Metadata{}, model.Config{Model: m}).Invoke(t.Context(), &call.Request{}); err == nil || !strings.HasPrefix(err.Error(), "invalid-request: the input is empty") {
		t.Error(err)
	}
}
