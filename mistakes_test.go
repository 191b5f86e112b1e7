package stone_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

// Mistakes that a run would carry out without a word are findings.
func TestMistakesAreFound(t *testing.T) {
	number, text, list := dag.NewType[int]("number"), dag.NewType[agent.Text]("text"), dag.NewType[[]int]("list")
	question := func(struct{}) string { return "How many?" }
	make := func(context.Context) (int, error) { return 1, nil }
	double := stone.Func("double", number, dag.NewType[int]("twice"), func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	model := script.New(script.Text("hi"))
	program := call.Capability{Metadata: call.Metadata{ID: "x/a", Kind: "program", Intents: []string{"x/y"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) { return nil, nil }}
	quiet := tool.Func("look", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Effects())
	for _, tt := range []struct {
		name string
		p    stone.Ashlar
		want string
	}{
		{"choices of another type", stone.Ask("ask", dag.Nothing, number, question, stone.Choices("yes", "2")), `[bad-option] ask: Choices: "yes" is not a valid answer of the type "number"`},
		{"a choice twice", stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("a"), question, stone.Choices("yes", "no", "yes")), `[bad-option] ask: Choices: "yes" occurs twice: remove one`},
		{"a kind that is misspelt", stone.Func0("make", number, make, stone.Retry{Attempts: 2, Kinds: []kind.Kind{"timeot"}}), `[unknown-kind] make: Retry: unknown failure kind "timeot"; did you mean "timeout"?`},
		{"a kind of the program", stone.Func0("make", number, make, stone.Retry{Attempts: 2, Kinds: []kind.Kind{"rude"}}), ``},
		{"attempts below zero", stone.Func0("make", number, make, stone.Retry{Attempts: -1}), `[bad-option] make: Retry: Attempts is -1 and Backoff 0s: neither may be negative`},
		{"a pause below zero", stone.Func0("make", number, make, stone.Retry{Attempts: 2, Backoff: -time.Second}), `[bad-option] make: Retry: Attempts is 2 and Backoff -1s`},
		{"all lanes and a quorum", stone.Map("each", list, number, double, stone.AllLanes(), stone.Quorum(2)), `[bad-option] each: AllLanes and Quorum(2) cannot be combined: leave one out`},
		{"a tool without description", agent.New("a", text, model, agent.Config{User: agent.Say("Hi"), Use: []agent.Middleware{quiet}}), `the tool "look" has no description: add one, so that the model knows when to call it`},
		{"an agent without a message", agent.New("a", text, model, agent.Config{System: agent.Say("You greet.")}), `[no-prompt] a: the model gets only the system text, and "Continue." as its first message: set User`},
		{"a call of nothing", call.New("c", text, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry()}, Input: call.From(number)}), `[no-candidate] c: the call names neither an intent nor a capability: name one`},
		{"a candidate that is none", call.New("c", text, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry(program)}, Intent: "x/y", Input: call.From(number),
			Dispatch: call.Dispatch{Candidates: []string{"x/a", "x/b"}}}), `[unknown-candidate] c: there is no capability "x/b", so it is left out of the candidates; did you mean "x/a"?`},
		{"a type without a name", stone.Func0("make", dag.NewType[int](""), make), `give it a dag.Type made by dag.NewType with a name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := stone.Validate(tt.p, stone.Given{Input: []dag.AnyType{list, number}})
			got := ""
			for _, f := range found {
				got += f.String() + "\n"
			}
			if tt.want == "" && strings.Contains(got, "unknown-kind") || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	_, err := stone.Run(t.Context(), stone.Func0("make", number, make), stone.Config{Recorder: journal.Keep(nil, journal.Options{})})
	if err == nil || !strings.Contains(err.Error(), "journal.Keep: the journal is nil") {
		t.Errorf("a nil journal: %v", err)
	}
}
