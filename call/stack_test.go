package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
)

// stacked answers with the stack that it was shown.
func stacked(_ context.Context, req *call.Request) (*call.Reply, error) {
	data, err := json.Marshal(req.Stack)
	return &call.Reply{Out: data}, err
}

// calling makes a pipeline of one call, whose answer is its own.
func calling(app *call.Applicator, intent string) stone.Ashlar {
	return call.New("inner", out, call.Spec{Applicator: app, Intent: intent, Input: call.From(out)})
}

func TestStack(t *testing.T) {
	registry := &call.Applicator{}
	registry.Registry = call.NewRegistry(
		call.Capability{Metadata: call.Metadata{ID: "a/leaf", Intents: []string{"a/show"}}, Invoke: stacked},
		call.Pipeline(call.Metadata{ID: "a/pipe", Intents: []string{"a/pass"}}, calling(registry, "a/show"), out, out),
		call.Pipeline(call.Metadata{ID: "a/self", Intents: []string{"a/recur"}}, calling(registry, "a/recur"), out, out),
	)
	from := []call.Frame{{Call: "act", Intent: "b/ask", Cap: "b/program"}}
	for _, tc := range []struct {
		name string
		spec call.Spec
		want string
	}{
		{"alone", call.Spec{Intent: "a/show"}, "null"},
		{"in a pipeline", call.Spec{Intent: "a/pass"}, `[{"call":"ask","cap/id":"a/pipe","intent":"a/pass"}]`},
		{"of a process that was started by a call", call.Spec{Intent: "a/pass", Stack: from},
			`[{"call":"act","cap/id":"b/program","intent":"b/ask"},{"call":"ask","cap/id":"a/pipe","intent":"a/pass"}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Applicator = registry
			if v := runCall(t.Context(), tc.spec, call.Budget{}, stone.Config{}); v.brief() != tc.want {
				t.Errorf("got %s, want %s", v.brief(), tc.want)
			}
		})
	}
	account := budget.New(call.Budget{})
	v := runCall(budget.With(t.Context(), account), call.Spec{Applicator: registry, Intent: "a/recur"}, call.Budget{}, stone.Config{})
	if v.brief() != "!plan/too-deep" || account.Spent().Roundtrips != call.MaxStack {
		t.Errorf("a capability that calls itself: %s after %d round trips, want plan/too-deep after %d", v.brief(), account.Spent().Roundtrips, call.MaxStack)
	}
}

// The stack crosses the envelope: a program that sends a request of its own passes it on.
func TestStackInEnvelope(t *testing.T) {
	app := app(call.Capability{Metadata: call.Metadata{ID: "a/leaf"}, Invoke: stacked})
	frames := []call.Frame{{Call: "plan/x", Intent: "a/b", Cap: "a/program"}, {Call: "y", Cap: "a/tool"}}
	data, err := json.Marshal(call.Request{Trace: call.Trace{ID: "r"}, Intent: "a/show", Stack: frames})
	if err != nil {
		t.Fatal(err)
	}
	trace, spec, err := call.ReadRequest(data)
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := app.Act(t.Context(), trace, spec, stone.Config{})
	if resp.Err != nil || string(resp.Reply.Out) != `[{"call":"plan/x","cap/id":"a/program","intent":"a/b"},{"call":"y","cap/id":"a/tool"}]` {
		t.Errorf("got %+v", resp)
	}
	frame := `{"call":"x","cap/id":"a/b"}`
	for stack, want := range map[string]string{
		strings.Repeat(frame+",", call.MaxStack) + frame: fmt.Sprintf("expected at most %d calls", call.MaxStack),
		`{"call":"x"}`:                       "cap/id",
		`{"call":"x","cap/id":"a/b","at":1}`: "unknown",
	} {
		_, _, err := call.ReadRequest([]byte(`{"proto":1,"trace":{"id":"r"},"task":{"intent":"a/b"},"input":{},"stack":[` + stack + `]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", stack, err, want)
		}
	}
}
