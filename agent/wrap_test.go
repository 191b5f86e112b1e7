package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stonelayer/stone/agent"
)

// Wrap runs the middlewares of a list as an agent does: in their order, around the inner
// handler, with the tools that they offer.
func TestWrap(t *testing.T) {
	var steps []string
	ring := func(name string) agent.Middleware {
		return agent.Middleware{Name: name, Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			steps = append(steps, name+">")
			c, err := next(ctx, c)
			steps = append(steps, "<"+name)
			return c.Recommend(agent.Recommendation{Source: name}), err
		}}
	}
	absent := ring("absent")
	absent.Guard = func(agent.Context) bool { return false }
	tired := errors.New("tired")
	turn := agent.Wrap([]agent.Middleware{ring("a"), absent, agent.Use(echo()), ring("b")}, func(_ context.Context, c agent.Context) (agent.Context, error) {
		for _, tool := range c.Tools {
			steps = append(steps, tool.Name)
		}
		return c, tired
	})
	c, err := turn(t.Context(), agent.Context{Turn: 1})
	if want := []string{"a>", "b>", "echo", "<b", "<a"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if !errors.Is(err, tired) || len(c.Advice) != 2 || c.Advice[1].Source != "a" {
		t.Errorf("got %v, %v", c.Advice, err)
	}
}
