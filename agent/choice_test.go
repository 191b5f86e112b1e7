package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
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
