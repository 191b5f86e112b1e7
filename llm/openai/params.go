package openai

import "github.com/stonelayer/stone/llm/internal/wire"

// Sources: OpenAI, API reference, "Create chat completion" and "Create a model response". Responses
// has neither stop nor seed.

var modes = map[string]any{"auto": "auto", "none": "none", "required": "required"}

var chatParams = wire.ParamRules{
	"temperature":    wire.Put("temperature"),
	"top_p":          wire.Put("top_p"),
	"stop":           wire.Put("stop"),
	"seed":           wire.Put("seed"),
	"parallel_tools": wire.Put("parallel_tool_calls"),
	"effort":         wire.Put("reasoning_effort"),
	"service_tier":   wire.Put("service_tier"),
	"cache_ttl":      wire.Put("prompt_cache_retention"),
	"metadata":       wire.Put("metadata"),
	"tool_choice": wire.Choice(wire.Put("tool_choice"), modes, func(name string) any {
		return object{"type": "function", "function": object{"name": name}}
	}),
}

var responsesParams = wire.ParamRules{
	"temperature":    wire.Put("temperature"),
	"top_p":          wire.Put("top_p"),
	"parallel_tools": wire.Put("parallel_tool_calls"),
	"effort":         wire.Put("reasoning", "effort"),
	"service_tier":   wire.Put("service_tier"),
	"cache_ttl":      wire.Put("prompt_cache_retention"),
	"metadata":       wire.Put("metadata"),
	"tool_choice": wire.Choice(wire.Put("tool_choice"), modes, func(name string) any {
		return object{"type": "function", "name": name}
	}),
}
