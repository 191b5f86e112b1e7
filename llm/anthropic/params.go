package anthropic

import (
	"fmt"

	"github.com/stonelayer/stone/llm/internal/wire"
)

// params follow the page "Messages" of Anthropic's API reference, and "Effort" of its guide.
// Messages has no seed. Its metadata is the id of the user.
var params = wire.ParamRules{
	"temperature":  wire.Put("temperature"),
	"top_p":        wire.Put("top_p"),
	"stop":         wire.Put("stop_sequences"),
	"effort":       wire.Put("output_config", "effort"),
	"service_tier": wire.Put("service_tier"),
	"cache_ttl":    func(object, any) error { return nil }, // a part of each mark
	"tool_choice": wire.Choice(wire.Put("tool_choice"), map[string]any{
		"auto": object{"type": "auto"}, "none": object{"type": "none"}, "required": object{"type": "any"},
	}, func(name string) any { return object{"type": "tool", "name": name} }),
	"parallel_tools": func(body object, parallel any) error {
		if body["tool_choice"] == nil {
			body["tool_choice"] = object{"type": "auto"}
		}
		if choice, ok := body["tool_choice"].(object); ok && choice["type"] == "none" {
			return nil
		}
		return wire.Put("tool_choice", "disable_parallel_tool_use")(body, !parallel.(bool))
	},
	"metadata": func(body object, value any) error {
		fields := value.(map[string]string)
		if len(fields) != 1 || fields["user_id"] == "" {
			return fmt.Errorf("metadata has %d fields: Messages takes user_id alone", len(fields))
		}
		return wire.Put("metadata", "user_id")(body, fields["user_id"])
	},
}
