package config_test

import (
	"slices"
	"testing"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/llm"
)

// TestConnect checks which protocol each name is, at a foreign server and at its provider's own.
func TestConnect(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	for protocol, want := range map[string][2]string{
		"anthropic":        {"http://h.invalid/v1/messages", "https://api.anthropic.com/v1/messages"},
		"openai":           {"http://h.invalid/v1/chat/completions", "https://api.openai.com/v1/responses"},
		"openai-chat":      {"http://h.invalid/v1/chat/completions", "https://api.openai.com/v1/chat/completions"},
		"openai-responses": {"http://h.invalid/v1/responses", "https://api.openai.com/v1/responses"},
	} {
		if !slices.Contains(config.Protocols, protocol) || config.KeyEnv(protocol) == "" {
			t.Errorf("%s is not one of %v, or has no key", protocol, config.Protocols)
		}
		for i, url := range []string{"http://h.invalid", ""} {
			m := config.Connect(protocol, config.Connection{Model: "m", URL: url, Key: "k"})
			if got := m.(llm.Informer).Info().Endpoint; got != want[i] || m.(llm.Checker).Check() != nil {
				t.Errorf("%s at %q: %s (%v), want %s", protocol, url, got, m.(llm.Checker).Check(), want[i])
			}
		}
	}
}
