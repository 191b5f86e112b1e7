package stonetest

import (
	"cmp"
	"os"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/openai"
)

// Models names the model that is asked at each provider; "" is not to ask there.
type Models struct{ OpenAI, Anthropic string }

// FromEnv returns a model that the environment offers, and skips the test if there
// is none: the one at OpenAI, or at a server that speaks its protocol, if
// OPENAI_API_KEY or OPENAI_BASE_URL is set; else the one at Anthropic, if
// ANTHROPIC_API_KEY is set. STONE_TEST_MODEL replaces the name of the model.
func FromEnv(t testing.TB, models Models) llm.Model {
	t.Helper()
	name := os.Getenv("STONE_TEST_MODEL")
	models.OpenAI, models.Anthropic = cmp.Or(name, models.OpenAI), cmp.Or(name, models.Anthropic)
	switch {
	case models.OpenAI != "" && (os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != ""):
		return openai.New(openai.Config{Model: models.OpenAI})
	case models.Anthropic != "" && os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: models.Anthropic})
	case models == Models{}:
		t.Skip("no live test: name a model in Models or STONE_TEST_MODEL")
	}
	t.Skip("no live test: set OPENAI_API_KEY, OPENAI_BASE_URL for a server that wants no key, or ANTHROPIC_API_KEY")
	return nil
}
