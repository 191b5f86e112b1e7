package llm_test

import (
	"log/slog"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"

	"context"
)

// served is a model that a server has.
type served struct{ llm.Model }

func (served) Info() llm.Info {
	return llm.Info{Provider: "openai", Model: "m", Endpoint: "https://models.example:8443/v1/chat"}
}

// The events of a request say who is asked where, and which model answered with which id.
func TestReport(t *testing.T) {
	text := dag.NewType[string]("text")
	var asked event.ModelRequest
	var answered event.ModelResponse
	watch := event.Func(slog.LevelInfo, func(e event.Event) {
		switch d := e.Data.(type) {
		case event.ModelRequest:
			asked = d
		case event.ModelResponse:
			answered = d
		}
	})
	p := stone.Func0("ask", text, func(ctx context.Context) (string, error) {
		r := llm.NewReport(event.At(ctx), nil, served{}, &llm.Request{}, 0)
		r.End(&llm.Reply{ID: "resp-1", Model: "m-2026", Usage: llm.Usage{ReasoningTokens: 7}}, budget.Usage{}, nil)
		return "", nil
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: watch}); err != nil {
		t.Fatal(err)
	}
	if asked.Provider != "openai" || asked.Server != "models.example:8443" || !asked.Stream || asked.Model != "m" {
		t.Errorf("asked %+v", asked)
	}
	if r := answered.Reply; r == nil || r.ID != "resp-1" || r.Model != "m-2026" || r.Reasoned != 7 {
		t.Errorf("answered %+v", answered.Reply)
	}
}
