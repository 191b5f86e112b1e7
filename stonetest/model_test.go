package stonetest_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
)

func serve(t *testing.T, answers []script.Answer) string {
	server := httptest.NewServer(script.New(answers...))
	t.Cleanup(server.Close)
	return server.URL
}

// TestModels checks that all models of the project keep the contract, with and without a
// guard.
func TestModels(t *testing.T) {
	for name, newModel := range map[string]func(t *testing.T, answers ...script.Answer) llm.Model{
		"script": func(_ *testing.T, answers ...script.Answer) llm.Model { return script.New(answers...) },
		"openai": func(t *testing.T, answers ...script.Answer) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: serve(t, answers), Key: "test-key"})
		},
		"anthropic": func(t *testing.T, answers ...script.Answer) llm.Model {
			return anthropic.New(anthropic.Config{Model: "m", URL: serve(t, answers), Key: "test-key"})
		},
		"responses": func(t *testing.T, answers ...script.Answer) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: serve(t, answers), Key: "test-key", Protocol: openai.Responses})
		},
		"stateful responses": func(t *testing.T, answers ...script.Answer) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: serve(t, answers), Key: "test-key", Protocol: openai.Responses, Stateful: true})
		},
		"gemini": func(t *testing.T, answers ...script.Answer) llm.Model {
			return gemini.New(gemini.Config{Model: "m", URL: serve(t, answers), Key: "test-key"})
		},
		"guarded": func(t *testing.T, answers ...script.Answer) llm.Model {
			// The long answer of the suite repeats itself on purpose.
			watch := func() *llm.Watcher { return &llm.Watcher{Compression: &llm.Compression{}} }
			return openai.New(openai.Config{Model: "m", URL: serve(t, answers), Key: "test-key", Repetition: watch})
		},
	} {
		t.Run(name, func(t *testing.T) { stonetest.TestModel(t, newModel) })
	}
}
