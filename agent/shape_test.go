package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// asked runs an agent that answers with the text and returns its request.
func asked[T any](t *testing.T, out dag.Type[T], text string) (llm.Request, stone.Result) {
	t.Helper()
	m := model(says(text))
	res, err := run(t, agent.New("a", out, m, agent.Config{User: agent.Say("go")}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m.requests[0], res
}

// TestFormat checks that the request has the schema of the type, and that an answer has only what
// the type takes, whatever the provider enforces.
func TestFormat(t *testing.T) {
	type flat struct {
		A string `json:"a"`
		B int    `json:"b,omitempty"`
	}
	type open struct {
		Names map[string]string `json:"names"`
	}
	narrow, err := schema.Parse([]byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	check := func(req llm.Request, res stone.Result, name, want string) {
		t.Helper()
		if got := outcome(t, res, nil); got != want || req.ResponseFormat.Name != name || !json.Valid(req.ResponseFormat.Schema) {
			t.Errorf("got %s, want %s, format %+v", got, want, req.ResponseFormat)
		}
	}
	// A provider whose strict mode requires every property writes null for one that is absent.
	for _, answer := range []string{`{"a":"x","b":null}`, `{"a":"x"}`} {
		req, res := asked(t, dag.NewType[flat]("flat"), answer)
		check(req, res, "flat", `{"a":"x"}`)
		req, res = asked(t, dag.NewType[json.RawMessage]("a plan/1").WithSchema(narrow), answer)
		check(req, res, "a_plan_1", `{"a":"x"}`)
	}
	req, res := asked(t, dag.NewType[open]("open"), "```json\n{\"names\":{\"a\":\"b\"}}\n```")
	check(req, res, "open", `{"names":{"a":"b"}}`)
}

// TestLateTools checks that a middleware can offer tools during the run, replace one
// of the list, and give advice.
func TestLateTools(t *testing.T) {
	late := agent.Middleware{Name: "late", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		other := echo()
		other.Run = func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "replaced"}, nil
		}
		fresh := echo()
		fresh.Name = "fresh"
		c, err := next(ctx, c.Offer(fresh).Offer(other))
		if c.Turn == 2 {
			c = c.Recommend(agent.Recommendation{Action: agent.Halt, Source: "late", Reason: "enough"})
		}
		return c, err
	}}
	m := model(calls("echo", `{"text":"a"}`, "fresh", `{"text":"b"}`), says("x"))
	_, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(echo()), late}, Decide: agent.ToolDirected}), stone.Config{})
	var f *stone.Failure
	if !errors.As(err, &f) || f.Kind != reasons.Halted || f.Reason != "late: enough" {
		t.Errorf("got %v, want a halt by late", err)
	}
	if got := transcript(m.requests[1].Messages); !strings.HasSuffix(got, "tool: replaced\ntool: echo b\n") {
		t.Errorf("conversation\n%s", got)
	}
	if tools := m.requests[1].Tools; len(tools) != 2 || tools[0].Name != "fresh" || tools[1].Name != "echo" {
		t.Errorf("tools %v", tools)
	}
}

// TestMistakes checks that mistakes in middlewares and tools end the agent with a
// failure that explains them.
func TestMistakes(t *testing.T) {
	wrap := func(w func(context.Context, agent.Context, agent.Handler) (agent.Context, error)) []agent.Middleware {
		return []agent.Middleware{{Name: "ring", Wrap: w}}
	}
	offering := func(change func(*agent.Tool)) []agent.Middleware {
		return wrap(func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			e := echo()
			change(&e)
			return next(ctx, c.Offer(e))
		})
	}
	for _, test := range []struct {
		name string
		use  []agent.Middleware
		kind kind.Kind
		say  string
	}{
		{"no reply", wrap(func(_ context.Context, c agent.Context, _ agent.Handler) (agent.Context, error) { return c, nil }), kind.Error, "turn 1 has no reply"},
		{"an error", wrap(func(_ context.Context, c agent.Context, _ agent.Handler) (agent.Context, error) {
			return c, stone.Fail("tired", "no more")
		}), "tired", "no more"},
		{"a panic", wrap(func(context.Context, agent.Context, agent.Handler) (agent.Context, error) { panic("oops") }), kind.Panic, "oops"},
		{"a tool without a function", offering(func(t *agent.Tool) { t.Run = nil }), kind.Error, "has no Run"},
		{"a tool with a broken schema", offering(func(t *agent.Tool) { t.Schema = []byte(`[]`) }), kind.Error, "the schema of the tool"},
		{"a meta that JSON cannot hold", offering(func(t *agent.Tool) {
			t.Run = func(context.Context, json.RawMessage) (agent.Result, error) {
				return agent.Result{Meta: map[string]any{"n": math.NaN()}}, nil
			}
		}), kind.BadContent, "Meta"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := run(t, agent.New("talk", note, model(calls("echo", `{"text":"a"}`)), agent.Config{User: agent.Say("go"), Use: test.use}), stone.Config{})
			var f *stone.Failure
			if !errors.As(err, &f) || f.Kind != test.kind || !strings.Contains(f.Reason, test.say) {
				t.Errorf("got %v, want %s: … %s …", err, test.kind, test.say)
			}
		})
	}
}

// TestBinaryText checks that invalid UTF-8 does not break the record.
func TestBinaryText(t *testing.T) {
	bad := tool("bad", func(string) (agent.Result, error) { return agent.Result{Text: "a\xffb"}, errors.New("c\xfed") })
	m := model(calls("bad", `{"text":""}`), says("done"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("x\xff"), Use: []agent.Middleware{agent.Use(bad)}}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := "user: x\uFFFD\ncall: bad {\"text\":\"\"}\ntool error: c\uFFFDd\nassistant: done\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
}

// TestPromptFails checks that an error of a prompt costs nothing.
func TestPromptFails(t *testing.T) {
	m := model(says("x"))
	_, err := run(t, agent.New("talk", note, m, agent.Config{System: dag.ReaderFunc(func(dag.DAG) (string, error) { return "", stone.Fail("no-template", "gone") })}), stone.Config{})
	var f *stone.Failure
	if !errors.As(err, &f) || f.Kind != "no-template" || m.calls() != 0 {
		t.Errorf("got %v after %d turns", err, m.calls())
	}
}
