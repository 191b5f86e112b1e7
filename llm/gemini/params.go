package gemini

import "github.com/stonelayer/stone/llm/internal/wire"

// calling is the rule of a field of the function calling config.
func calling(body object, value any) error {
	return wire.Put("toolConfig", "functionCallingConfig")(body, value)
}

// params follow the pages "Generating content" and "Function calling" of Google's Gemini API
// documentation. The protocol cannot forbid parallel calls, and has no service tier.
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
