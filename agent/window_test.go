package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
)

// TestWindow compacts a conversation by the window that a table tells.
func TestWindow(t *testing.T) {
	for name, test := range map[string]struct {
		window, max, want int
	}{
		"unknown":        {0, 0, 0},
		"large":          {1000, 0, 0},
		"small":          {120, 0, 90},
		"small, bounded": {120, 10_000, 90},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []int // the tokens of each request
			m := model(says("one"), says("two"), says("three"))
			look := agent.Middleware{Name: "look", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
				if c.Window() != test.window {
					t.Errorf("the window is %d, want %d", c.Window(), test.window)
				}
				n := 0
				for _, message := range c.Messages {
					n += message.Tokens()
				}
				asked = append(asked, n)
				return next(ctx, c)
			}}
			talk := []llm.Message{llm.User("task")}
			for range 4 {
				talk = append(talk, llm.Assistant(strings.Repeat("word ", 40)), llm.User("and?"))
			}
			add := agent.Middleware{Name: "add", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
				c.Messages = talk
				return next(ctx, c)
			}}
			p := agent.New("a", note, m, agent.Config{User: agent.Say("x"), Use: []agent.Middleware{add, agent.Compact(agent.CompactConfig{MaxTokens: test.max, Keep: 1}), look}})
			ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Window: test.window} })
			if _, err := stone.Run(ctx, p, stone.Config{}); err != nil {
				t.Fatal(err)
			}
			if n := asked[0]; test.want > 0 && n > test.want || test.want == 0 && n < 200 {
				t.Errorf("the request has %d tokens, want at most %d", n, test.want)
			}
		})
	}
}

// TestUnfit says before a run that a model cannot do what the agent needs.
func TestUnfit(t *testing.T) {
	tool := agent.Middleware{Name: "t", Tool: &agent.Tool{Tool: llm.Tool{Name: "t"}}}
	can := func(can ...string) context.Context {
		return llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Can: append([]string{}, can...)} })
	}
	unfit := func(ctx context.Context, cfg agent.Config) error {
		d := agent.New("a", note, model(), cfg).Detail()
		return d.Unfit(ctx)
	}
	if err := unfit(can(), agent.Config{}); err != nil {
		t.Errorf("an agent that needs nothing: %v", err)
	}
	for _, cfg := range []agent.Config{{Use: []agent.Middleware{tool}}, {Params: llm.Params{Effort: "high"}}} {
		if err := unfit(can(), cfg); !errors.As(err, new(*llm.UnfitError)) {
			t.Errorf("%+v: %v", cfg, err)
		}
		if err := errors.Join(unfit(can("tools", "thinking"), cfg), unfit(t.Context(), cfg)); err != nil {
			t.Error(err)
		}
	}
}
