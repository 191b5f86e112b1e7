package call_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

func TestBuiltIn(t *testing.T) {
	request := &call.Request{Constraints: call.JSON(`{"max-chars":1}`)}
	subject := call.Subject{Request: request, Out: call.JSON(`{"text":"four"}`)}
	for _, c := range []struct {
		name        string
		constraints call.JSON
		holds       bool
	}{
		{"max-chars", nil, false},
		{"max-chars", call.JSON(`{"max-chars":4}`), true},
		{"max-chars", call.JSON(`{"max-chars":3}`), false},
		{"regex", call.JSON(`{"regex":"^f"}`), true},
		{"regex", call.JSON(`{}`), false},
		{"non-empty", nil, true},
	} {
		if err := call.BuiltIn(c.name, c.constraints)(t.Context(), subject); c.holds != (err == nil) {
			t.Errorf("%s %s: %v", c.name, c.constraints, err)
		}
	}
	if string(request.Constraints) != `{"max-chars":1}` {
		t.Error("the request was changed")
	}
	if call.BuiltIn("nobody", nil) != nil || !slices.Contains(call.BuiltInChecks(), "json") || !slices.Contains(call.BuiltInSchemas(), "res/text") {
		t.Error("the lists of names are wrong")
	}
}

// An Applicator that defines intents still knows the intents of Stone's own calls.
func TestOwnIntents(t *testing.T) {
	answers := call.Func(call.Metadata{ID: "go/any"}, func(context.Context, call.JSON) (map[string]string, error) {
		return map[string]string{"text": "done"}, nil
	})
	app := &call.Applicator{Registry: call.NewRegistry(answers), Intents: map[string]call.Intent{"letter/sort": {}}}
	for intent, known := range map[string]bool{"letter/sort": true, "eval/grade": true, "eval/revise": true, "search/rerank": true, "llm/turn": true, "letter/sor": false} {
		spec := call.Spec{Applicator: app, Intent: intent}
		faults := stone.Validate(call.New("ask", dag.NewType[call.JSON]("answer"), spec), stone.Given{}).Errors()
		if known != (len(faults) == 0) {
			t.Errorf("%s: %v", intent, faults)
		}
		if err := app.CheckRequest(spec); known != (err == nil) {
			t.Errorf("a request of %s: %v", intent, err)
		}
	}
	if reply, err := llm.Collect(t.Context(), call.Model(app, call.Spec{}), &llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil || reply.Text != "done" {
		t.Errorf("a turn without an intent: %v, %v", reply, err)
	}
}

func TestEffective(t *testing.T) {
	two, half := 2, 0.5
	app := &call.Applicator{Policy: call.Policy{
		Default: call.Rules{Done: call.Done{Must: []string{"json"}}, Fallback: []string{"b"}},
		Intents: map[string]call.Rules{"say": {Done: call.Done{ScoreMin: &half}, SwitchOn: []string{"a/b"}, Judge: call.Judge{On: new(true)}}},
		Routing: call.Rules{Retry: call.Retry{SameCapMax: &two}, Fallback: []string{"c"}},
	}}
	r := app.Effective(call.Spec{Intent: "say", Done: call.Done{Must: []string{"non-empty"}}})
	switch {
	case !slices.Equal(r.Done.Must, []string{"json", "non-empty"}), *r.Done.ScoreMin != 0.5,
		*r.Retry.SameCapMax != 2, r.Retry.FallbackMax != nil, !slices.Equal(r.SwitchOn, []string{"a/b"}),
		!slices.Equal(r.Fallback, []string{"b", "c"}), !*r.Judge.On, *r.Judge.Weight != 0.5, r.Judge.OnError != "closed":
		t.Errorf("%+v", r)
	}
	r = app.Effective(call.Spec{Intent: "sing"})
	if len(r.SwitchOn) < 5 || *r.Judge.On || *r.Done.ScoreMin != 0 {
		t.Errorf("%+v", r)
	}
}
