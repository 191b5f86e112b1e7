package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/stonetest"
)

func capability(id string, m llm.Model) call.Capability {
	return model.New(call.Metadata{ID: id}, model.Config{Model: m})
}

func applicator(caps ...call.Capability) *call.Applicator {
	return &call.Applicator{Registry: call.NewRegistry(caps...)}
}

// The model of an agent can be a cascade: here the small model is overloaded.
func Example_agent() {
	small := script.New(script.Status(529, `{"error":{"message":"overloaded"}}`))
	large := script.New(script.Text("Rayleigh scattering."))
	app := &call.Applicator{Registry: call.NewRegistry(
		model.New(call.Metadata{ID: "model/small"}, model.Config{Model: small}),
		model.New(call.Metadata{ID: "model/large"}, model.Config{Model: large}),
	)}
	answer := dag.NewType[agent.Text]("answer")
	ask := agent.New("ask", answer, call.Model(app, call.Spec{
		Dispatch: call.Dispatch{Candidates: []string{"model/small", "model/large"}},
	}), agent.Config{User: agent.Say("Why is the sky blue?")})

	res, err := stone.Run(context.Background(), ask, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := answer.Of(res.Node)
	fmt.Println(text.Text, err)
	// Output: Rayleigh scattering. <nil>
}

func TestModelOfCalls(t *testing.T) {
	for _, strategy := range []string{call.Cascade, call.Race, call.Tournament} {
		t.Run(strategy, func(t *testing.T) {
			stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
				return call.Model(applicator(capability("model/a", script.New(answers...))), call.Spec{Dispatch: call.Dispatch{Strategy: strategy}})
			})
		})
	}
	t.Run("after another candidate failed", func(t *testing.T) {
		stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
			broken := script.Func(func(int, *llm.Request) script.Answer {
				return script.Answer{Reply: llm.Reply{Text: "It begins"}, Err: &llm.ProviderError{Message: "and ends"}}
			})
			return call.Model(applicator(capability("model/a", broken), capability("model/b", script.New(answers...))),
				call.Spec{Dispatch: call.Dispatch{Candidates: []string{"model/a", "model/b"}}})
		})
	})
}

func reported(a script.Answer, in, out int) script.Answer {
	a.Reply.Usage = llm.Usage{InputTokens: &in, OutputTokens: &out}
	return a
}

var answerType = dag.NewType[agent.Text]("answer")

// agentOf returns an agent with a tool, whose model is a cascade.
func agentOf(app *call.Applicator, spec call.Spec) stone.Ashlar {
	now := agent.Tool{Tool: llm.Tool{Name: "now"}, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
		return agent.Result{Text: "noon"}, nil
	}}
	return agent.New("ask", answerType, call.Model(app, spec), agent.Config{User: agent.Say("How late is it?"), Use: []agent.Middleware{agent.Use(now)}})
}

// An agent over calls pays each attempt once, is resumed without paying again, and its text
// is heard once.
func TestAgentOverCalls(t *testing.T) {
	price := budget.Price{In: 1, Out: 1}
	small := script.Func(func(int, *llm.Request) script.Answer {
		return reported(script.Answer{Reply: llm.Reply{Text: "It is"}, Err: &llm.TruncatedError{}}, 1000, 0)
	})
	broken := true
	large := script.Func(func(n int, req *llm.Request) script.Answer {
		if last := req.Messages[len(req.Messages)-1]; last.Role != llm.RoleTool {
			return reported(script.Call("now", `{}`), 1000, 0)
		}
		if broken {
			return script.Status(400, "not now")
		}
		return reported(script.Text("It is noon."), 1000, 0)
	})
	pipeline := func() stone.Ashlar {
		return agentOf(applicator(capability("model/small", llm.Priced(small, price)), capability("model/large", llm.Priced(large, price))),
			call.Spec{Dispatch: call.Dispatch{Candidates: []string{"model/small", "model/large"}}})
	}
	store := memdb.New(t)
	account := budget.New(budget.Limits{USD: new(1.0), Roundtrips: new(100)})
	run := func(a *budget.Account, watch *eventtest.Recorder) (stone.Result, error) {
		return stone.Run(budget.With(t.Context(), a), pipeline(), stone.Config{RunID: "run", Watch: watch, Recorder: journal.Keep(store, journal.Options{})})
	}
	_, err := run(account, new(eventtest.Recorder))
	if err == nil || !strings.Contains(err.Error(), "not now") {
		t.Fatalf("error %v, want that of the last candidate", err)
	}
	if got := account.Spent(); fmt.Sprintf("%.6f", got.USD) != "0.003000" || got.Tokens != 3000 || got.Roundtrips != 4 {
		t.Errorf("the first part spent %+v, want 3,000 tokens in 4 round trips", got)
	}
	broken = false
	account = budget.New(budget.Limits{USD: new(1.0), Roundtrips: new(100)})
	var events eventtest.Recorder
	res, err := run(account, &events)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := answerType.Of(res.Node); got.Text != "It is noon." {
		t.Errorf("answer %q", got.Text)
	}
	if got := account.Spent(); fmt.Sprintf("%.6f", got.USD) != "0.005000" || got.Tokens != 5000 {
		t.Errorf("both parts spent %+v, want 5,000 tokens: a recorded answer is not paid again", got)
	}
	if err := eventtest.Check(events.Events()); err != nil {
		t.Error(err)
	}
	if got := said(events.Events()); got != "It is noon." {
		t.Errorf("heard %q", got)
	}
	steps, err := store.Steps(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var usd float64
	for _, s := range steps {
		usd += s.Usage.USD
	}
	if fmt.Sprintf("%.6f", usd) != "0.005000" {
		t.Errorf("the journal has steps of %f USD, want each paid step once", usd)
	}
}

// said is the text that was streamed and not retracted.
func said(events []event.Event) string {
	var text strings.Builder
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.Delta:
			if d.Kind == event.Text {
				text.WriteString(d.Text)
			}
		case event.Retracted:
			text.Reset()
		}
	}
	return text.String()
}

// Validate sees through the agent to the capabilities: none can answer, one is not granted,
// one has no price.
func TestAgentOverCallsIsChecked(t *testing.T) {
	shell := capability("model/shell", script.New())
	shell.Metadata = shell.Metadata.Needing("process")
	for name, tc := range map[string]struct {
		app   *call.Applicator
		given stone.Given
		want  string
	}{
		"nobody":      {applicator(), stone.Given{}, "no capability"},
		"not granted": {applicator(shell), stone.Given{Grant: []string{}}, "process"},
	} {
		t.Run(name, func(t *testing.T) {
			err := stone.Validate(agentOf(tc.app, call.Spec{}), tc.given).Err()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	ctx := budget.With(t.Context(), budget.New(budget.Limits{USD: new(1.0)}))
	_, err := stone.Run(ctx, agentOf(applicator(capability("model/a", script.New(script.Text("x")))), call.Spec{}), stone.Config{})
	if err == nil || !strings.Contains(err.Error(), "needs a price") {
		t.Errorf("error %v, want that a price is needed", err)
	}
}

// Any capability can answer a turn, and its answer passes the gate of the call.
func TestTurnOfOtherCapabilities(t *testing.T) {
	short := call.Func(call.Metadata{ID: "go/short"}, func(_ context.Context, req llm.Request) (map[string]string, error) {
		return map[string]string{"text": "You said: " + req.Messages[0].Text()}, nil
	})
	streams := capability("model/long", script.New(script.Text("A very long answer.")))
	m := call.Model(applicator(streams, short), call.Spec{
		Dispatch: call.Dispatch{Candidates: []string{"model/long", "go/short"}}, Done: call.Done{Must: []string{"max-chars"}},
		Constraints: call.From(dag.Derive(dag.Nothing, func(struct{}) map[string]int { return map[string]int{"max-chars": 15} })),
	})
	reply, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil || reply.Text != "You said: hi" {
		t.Errorf("%q, %v: want the answer that passes the gate", reply.Text, err)
	}
}

const billing = `{"area":"billing","sure":true}`

// outs are the out-schemas of turns.
var outs = map[string]*schema.Schema{
	"sorted": must(schema.Parse([]byte(`{"type":"object","required":["area","sure"],"properties":{"area":{"type":"string"},"sure":{"type":"boolean"}}}`))),
	"letter": must(schema.Parse([]byte(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"to":{"type":"string"}}}`))),
	"list":   must(schema.Parse([]byte(`{"type":"array","items":{"type":"string"}}`))),
}

// If an intent has an out-schema, the answer of a turn is JSON that fits it, which checks see.
func TestTurnWithOutSchema(t *testing.T) {
	program := func(out string) call.Capability {
		return call.Func(call.Metadata{ID: "go/a"}, func(context.Context, call.JSON) (call.JSON, error) { return call.JSON(out), nil })
	}
	says := func(a ...script.Answer) call.Capability {
		return model.New(call.Metadata{ID: "model/a"}, model.Config{Model: script.New(a...)})
	}
	tools := []llm.Tool{{Name: "now", Schema: json.RawMessage(`{"type":"object"}`)}}
	for _, c := range []struct {
		name, out string
		cap       call.Capability
		want      string
	}{
		{"JSON", "sorted", says(script.Text(billing)), billing},
		{"fenced JSON", "sorted", says(script.Text("```json\n" + billing + "\n```")), billing},
		{"text", "sorted", says(script.Text("billing")), `the answer is not JSON, but "billing"`},
		{"other JSON", "sorted", says(script.Text(`{"area":"billing"}`)), `property "sure" is required, but missing`},
		{"a check", "sorted", says(script.Text(`{"area":"sales","sure":true}`)), "the area is not billing"},
		{"a refusal", "sorted", says(script.Answer{Reply: llm.Reply{Refusal: "No."}}), "the model refused: No."},
		{"a tool call", "sorted", says(script.Call("now", `{}`)), "now"},
		{"a tool call before a text", "res/text", says(script.Call("now", `{}`)), "now"},
		{"a wrapped list", "list", says(script.Text(`{"value":["a"]}`)), `["a"]`},
		{"a text", "res/text", says(script.Text("Dear Ada")), "Dear Ada"},
		{"an object with a text", "letter", says(script.Text("Dear Ada")), "Dear Ada"},
		{"a program's object", "sorted", program(billing), billing},
		{"a program's text", "sorted", program(`{"text":"{\"area\":\"billing\",\"sure\":true}"}`), billing},
		{"a program's content", "res/text", program(`{"content":"Dear Ada"}`), "Dear Ada"},
		{"a program's other object", "sorted", program(`{"area":"billing"}`), `property "sure" is required, but missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := applicator(c.cap)
			app.Schemas = outs
			app.Intents = map[string]call.Intent{"letter/sort": {Out: c.out}}
			app.Checks = map[string]call.Check{"billing": func(_ context.Context, s call.Subject) error {
				if strings.HasPrefix(string(s.Out), `{"area":`) && !strings.HasPrefix(string(s.Out), `{"area":"billing"`) {
					return errors.New("the area is not billing")
				}
				return nil
			}}
			m := call.Model(app, call.Spec{Intent: "letter/sort", Done: call.Done{Must: []string{"billing", "response-format"}}})
			reply, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("about an invoice")}, Tools: tools})
			got := fmt.Sprint(err)
			if err == nil {
				if got = reply.Text; len(reply.ToolCalls) > 0 {
					got = reply.ToolCalls[0].Name
				}
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// A model is told the out-schema of the intent or the capability, unless the conversation has its own format.
func TestTurnTellsOutSchema(t *testing.T) {
	sorted := string(outs["sorted"].Ordered())
	for _, c := range []struct {
		intent, cap string
		own         *llm.Format
		want        string
	}{
		{"sorted", "", nil, sorted},
		{"", "sorted", nil, sorted},
		{"sorted", "", &llm.Format{Name: "own", Schema: json.RawMessage(`{"type":"object"}`)}, `{"type":"object"}`},
		{"letter", "res/text", nil, ""},
		{"", "", nil, ""},
	} {
		m := script.New(script.Text(billing))
		find := (&call.Applicator{Schemas: outs}).Schema
		app := applicator(model.New(call.Metadata{ID: "model/a", Out: c.cap}, model.Config{Model: m, Schema: find}))
		app.Schemas = outs
		app.Intents = map[string]call.Intent{"letter/sort": {Out: c.intent}}
		_, err := llm.Collect(t.Context(), call.Model(app, call.Spec{Intent: "letter/sort"}), &llm.Request{Messages: []llm.Message{llm.User("hi")}, ResponseFormat: c.own})
		got := ""
		if f := m.Requests()[0].ResponseFormat; f != nil {
			got = string(f.Schema)
		}
		if err != nil || got != c.want {
			t.Errorf("intent %q, capability %q: the model is told %s, want %s (%v)", c.intent, c.cap, got, c.want, err)
		}
	}
}
