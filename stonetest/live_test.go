package stonetest

import (
	"testing"

	"github.com/stonelayer/stone/llm"
)

func TestLiveModel(t *testing.T) {
	all := ModelNames{OpenAI: "gpt", Anthropic: "claude", Gemini: "gemini-2"}
	const noKey, noName = "set OPENAI_API_KEY, OPENAI_BASE_URL for a server without a key, ANTHROPIC_API_KEY or GEMINI_API_KEY", "name a model in ModelNames or STONE_TEST_MODEL"
	for _, tt := range []struct {
		name  string
		env   map[string]string
		names ModelNames
		want  string
	}{
		{"nothing", nil, all, noKey},
		{"no names", map[string]string{"OPENAI_API_KEY": "k"}, ModelNames{}, noName},
		{"a key", map[string]string{"OPENAI_API_KEY": "k"}, all, "openai gpt"},
		{"a server", map[string]string{"OPENAI_BASE_URL": "http://localhost:8000"}, all, "openai gpt"},
		{"the other key", map[string]string{"ANTHROPIC_API_KEY": "k"}, all, "anthropic claude"},
		{"the last key", map[string]string{"GEMINI_API_KEY": "k"}, all, "gemini gemini-2"},
		{"both keys", map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, all, "openai gpt"},
		{"both keys, one name", map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, ModelNames{Anthropic: "claude"}, "anthropic claude"},
		{"a key without a name", map[string]string{"OPENAI_API_KEY": "k"}, ModelNames{Anthropic: "claude"}, noKey},
		{"another name", map[string]string{"ANTHROPIC_API_KEY": "k", "STONE_TEST_MODEL": "qwen"}, ModelNames{}, "anthropic qwen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "GEMINI_BASE_URL", "STONE_TEST_MODEL"} {
				t.Setenv(name, tt.env[name])
			}
			m, got := offered(tt.names)
			if m != nil {
				info := m.(llm.Informer).Info()
				got = info.Provider + " " + info.Model
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
