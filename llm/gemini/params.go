package gemini

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stonelayer/stone/llm/internal/wire"
)

// calling is the rule for a field of the function calling config.
func calling(body object, value any) error {
	return wire.Put("toolConfig", "functionCallingConfig")(body, value)
}

// params follow the pages "Generating content" and "Function calling" of Google's Gemini API documentation. The protocol cannot
// forbid parallel calls, and does not support a service tier.
var params = wire.ParamRules{
	"temperature": wire.Put("generationConfig", "temperature"),
	"top_p":       wire.Put("generationConfig", "topP"),
	"stop":        wire.Put("generationConfig", "stopSequences"),
	"seed":        wire.Put("generationConfig", "seed"),
	"effort":      wire.Put("generationConfig", "thinkingConfig", "thinkingLevel"),
	"tool_choice": wire.Choice(calling, map[string]any{
		"auto": object{"mode": "AUTO"}, "none": object{"mode": "NONE"}, "required": object{"mode": "ANY"},
	}, func(name string) any { return object{"mode": "ANY", "allowedFunctionNames": []string{name}} }),
}

// params25 are the settings for Gemini 2.5, which has a token budget in place of a thinking level.
var params25 = with("effort", func(body object, effort any) error {
	budget, ok := budgets[effort.(string)]
	if !ok {
		return fmt.Errorf("effort is %q: models of Gemini 2.5 take none, minimal, low, medium and high", effort)
	}
	return wire.Put("generationConfig", "thinkingConfig", "thinkingBudget")(body, budget)
})

// budgets maps thinking levels to token budgets. Source: Google, Gemini API guide "OpenAI compatibility", section "Thinking".
var budgets = map[string]int{"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}

// paramsBefore25 are the settings for models that do not think.
var paramsBefore25 = with("effort", nil)

func with(name string, rule func(object, any) error) wire.ParamRules {
	rules := maps.Clone(params)
	if rules[name] = rule; rule == nil {
		delete(rules, name)
	}
	return rules
}

func paramsOf(model string) wire.ParamRules {
	model = strings.TrimPrefix(model, "models/")
	switch {
	case strings.HasPrefix(model, "gemini-2.5"):
		return params25
	case before3(model):
		return paramsBefore25
	}
	return params
}
