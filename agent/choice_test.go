package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// obedient calls a tool as long as the choice forces it.
func obedient(choices *[]string) llm.Model {
	return script.Func(func(n int, req *llm.Request) script.Answer {
		*choices = append(*choices, req.Params.ToolChoice)
		if c := req.Params.ToolChoice; c == "required" || c == "look" {
			return script.Calls(llm.ToolCall{ID: fmt.Sprint("call_", n), Name: "look", Input: json.RawMessage(`{}`)})
		}
		return script.Text("seen")
	})
}

// TestEndsOnCall ends an agent with the call of a tool: its input is the result.
func TestEndsOnCall(t *testing.T) {
	type verdict struct {
		OK     bool   `json:"ok"`
		Reason string `json:"reason"`
	}
	decided := dag.NewType[verdict]("verdict")
	end := agent.Middleware{Name: "decide", Tool: &agent.Tool{Tool: llm.Tool{Name: "decide", Schema: json.RawMessage(`{"type":"object"}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "noted", Recommend: agent.Answer(string(input))}, nil
		}}}
	call := func(input string) any { return calls("decide", input) }
	for name, tt := range map[string]struct {
		answers []any
		decide  agent.Decide
		want    verdict
		kind    kind.Kind
	}{
		"at once":             {[]any{call(`{"ok":true,"reason":"fine"}`)}, nil, verdict{true, "fine"}, ""},
		"directed by tools":   {[]any{call(`{"ok":true,"reason":"fine"}`)}, agent.ToolDirected, verdict{true, "fine"}, ""},
		"beside other calls":  {[]any{calls("echo", `{"text":"x"}`), calls("echo", `{"text":"x"}`, "decide", `{"ok":false,"reason":"no"}`)}, nil, verdict{false, "no"}, ""},
		"a misfit, then good": {[]any{call(`{"ok":"perhaps"}`), call(`{"ok":false,"reason":"no"}`)}, nil, verdict{false, "no"}, ""},
		"misfits":             {[]any{call(`{"ok":"perhaps"}`), call(`{"ok":"perhaps"}`)}, nil, verdict{}, reasons.ParseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			m, mem := model(tt.answers...), dies(t, -1)
			a := agent.New("a", decided, m, agent.Config{User: agent.Say("Decide."), Use: []agent.Middleware{agent.Use(echo()), end}, Decide: tt.decide, Params: llm.Params{ToolChoice: "required"}})
			for range 2 { // the second time from the records
				got, err := stone.Produce(t.Context(), a, decided, stone.Config{Recorder: mem, RunID: "r"})
				if tt.kind != "" && errors.Is(err, tt.kind) {
					continue
				}
				if err != nil || got != tt.want || m.calls() != len(tt.answers) {
					t.Errorf("%+v, %v after %d requests", got, err, m.calls())
				}
			}
		})
	}
}

// TestChoiceThatNeverEnds is found before a run.
func TestChoiceThatNeverEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  agent.Config
		want string
	}{
		"no tool":  {agent.Config{Params: llm.Params{ToolChoice: "required"}}, "bad-option"},
		"one turn": {agent.Config{Params: llm.Params{ToolChoice: "required"}, MaxTurns: 1, Use: []agent.Middleware{agent.Use(echo())}}, "never-ends"},
		"two":      {agent.Config{Params: llm.Params{ToolChoice: "echo"}, MaxTurns: 2, Use: []agent.Middleware{agent.Use(echo())}}, ""},
	} {
		tt.cfg.User = agent.Say("go")
		var found string
		for _, f := range stone.Validate(agent.New("a", note, model(), tt.cfg), stone.Given{}) {
			if f.Type != "no-description" { // of the tool, which has none
				found = f.Type
			}
		}
		if found != tt.want {
			t.Errorf("%s: found %q, want %q", name, found, tt.want)
		}
	}
}

// A forced choice holds until a call was made, so that the agent ends; a middleware chooses by turn.
func TestToolChoiceEnds(t *testing.T) {
	look := agent.Middleware{Name: "look", Tool: &agent.Tool{Tool: llm.Tool{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, nil }}}
	said := dag.NewType[agent.Text]("said")
	third := func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		if c.Turn < 3 {
			other := *c.Params
			other.ToolChoice = "required"
			c.Params = &other
		}
		return next(ctx, c)
	}
	for name, tt := range map[string]struct {
		choice string
		use    []agent.Middleware
		want   []string
	}{
		"required": {"required", nil, []string{"required", "auto"}},
		"a name":   {"look", nil, []string{"look", "auto"}},
		"none":     {"none", nil, []string{"none"}},
		"by turn":  {"", []agent.Middleware{{Name: "third", Wrap: third}}, []string{"required", "required", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var choices []string
			a := agent.New("a", said, obedient(&choices), agent.Config{User: agent.Say("Look."), Params: llm.Params{ToolChoice: tt.choice}, Use: append([]agent.Middleware{look}, tt.use...)})
			got, err := stone.Produce(t.Context(), a, said, stone.Config{})
			if err != nil || got.Text != "seen" || !slices.Equal(choices, tt.want) {
				t.Errorf("%q, %v, choices %q, want %q", got.Text, err, choices, tt.want)
			}
		})
	}
}
