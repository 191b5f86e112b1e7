package stonetest

import (
	"cmp"
	"os"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// ModelNames contains a model name for each provider; "" means that the provider is not used.
type ModelNames struct{ OpenAI, Anthropic, Gemini string }

// LiveModel returns the model configured in the environment, or skips the test if no model is configured. The first of these
// environment variables that is set determines the provider: OPENAI_API_KEY or OPENAI_BASE_URL means OpenAI or a server that
// implements OpenAI's protocol, ANTHROPIC_API_KEY means Anthropic, and GEMINI_API_KEY means Google. A provider without a name in
// names is skipped. STONE_TEST_MODEL, if set, replaces all names.
func LiveModel(t testing.TB, names ModelNames) llm.Model {
	t.Helper()
	m, missing := offered(names)
	if m == nil {
		t.Skip("no live test: " + missing)
	}
	return m
}

// offered returns the configured model. If no model is configured, missing says which environment variables to set.
func offered(names ModelNames) (m llm.Model, missing string) {
	name := os.Getenv("STONE_TEST_MODEL")
	names.OpenAI, names.Anthropic, names.Gemini = cmp.Or(name, names.OpenAI), cmp.Or(name, names.Anthropic), cmp.Or(name, names.Gemini)
	switch {
	case names.OpenAI != "" && (os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != ""):
		return openai.New(openai.Config{Model: names.OpenAI}), ""
	case names.Anthropic != "" && os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: names.Anthropic}), ""
	case names.Gemini != "" && os.Getenv("GEMINI_API_KEY") != "":
		return gemini.New(gemini.Config{Model: names.Gemini}), ""
	case names == ModelNames{}:
		return nil, "name a model in ModelNames or STONE_TEST_MODEL"
	}
	return nil, "set OPENAI_API_KEY, OPENAI_BASE_URL for a server without a key, ANTHROPIC_API_KEY or GEMINI_API_KEY"
}
