package config_test

import (
	"testing"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/llm"
)

// TestTable finds the row and the limits of a model by its server.
func TestTable(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	c, err := load(t, `{:providers {:local {:protocol :openai :url "http://localhost:8000" :limits {:concurrency 4}}
		:anthropic {:limits {:requests-per-minute 500 :tokens-per-minute 9 :processes 4}}
		:openai {:limits {:requests-per-minute 500 :tokens-per-minute 1000}}}
		:models [{:model "m" :date "2026-11-22" :window 1}
			{:model "m" :provider :local :date "2026-11-22" :window 2 :can #{}}
			{:model "m" :provider :gemini :date "2026-11-22" :window 3 :usd-per-mtok-in 1 :usd-per-mtok-out 2}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		info   llm.Info
		window int
		limits *limit.Limits // nil for no Limiter
	}{
		{llm.Info{Provider: "openai", Model: "m", Endpoint: "https://api.openai.com/v1/responses"}, 1, &limit.Limits{RequestsPerMinute: 500, TokensPerMinute: 1000}},
		{llm.Info{Provider: "openai", Model: "m", Endpoint: "http://localhost:8000/v1/chat/completions"}, 2, &limit.Limits{Concurrency: 4}},
		{llm.Info{Provider: "openai", Model: "m", Endpoint: "http://localhost:9000/v1/chat/completions"}, 1, nil},
		{llm.Info{Provider: "gemini", Model: "m"}, 3, &limit.Limits{}},
		{llm.Info{Provider: "anthropic", Model: "n", Endpoint: "https://api.anthropic.com/v1/messages"}, 0, &limit.Limits{RequestsPerMinute: 125, TokensPerMinute: 2}},
	} {
		s := c.Table(test.info)
		if s.Window != test.window || (s.Can != nil) != (test.window == 2) || (s.Price != nil) != (test.window == 3) {
			t.Errorf("%+v: %+v", test.info, s)
		}
		if (s.Limiter == nil) != (test.limits == nil) || s.Limiter != nil && s.Limiter.Limits() != *test.limits {
			t.Errorf("%+v: limited by %+v", test.info, s.Limiter)
		}
	}
}
