package openai

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// reasoningText returns the readable reasoning of a delta. Some servers repeat the same text in several fields, of which the
// first non-empty field counts.
func (d *chatDecoder) reasoningText(in *delta) string {
	details := d.addDetails(in.ReasoningDetails)
	if s, ok := str(in.ReasoningContent); ok && s != "" {
		d.thought = true
		return s
	}
	if s, ok := str(in.Reasoning); ok && s != "" {
		return s
	}
	return details
}

// addDetails stores reasoning details, which must be sent again in the next turn, and returns their readable text.
func (d *chatDecoder) addDetails(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '[' {
		return ""
	}
	var list []map[string]any
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var text strings.Builder
	for _, detail := range list {
		if s, ok := detail["text"].(string); ok {
			text.WriteString(s)
		}
		d.addDetail(detail)
	}
	return text.String()
}

// addDetail appends a detail, or extends the last detail with its next piece.
func (d *chatDecoder) addDetail(detail map[string]any) {
	if n := len(d.details); n > 0 && detail["type"] != "reasoning.encrypted" {
		last := d.details[n-1]
		if last["type"] == detail["type"] && last["index"] == detail["index"] {
			for key, value := range detail {
				before, isText := last[key].(string)
				piece, ok := value.(string)
				switch {
				case isText && ok && (key == "text" || key == "summary"):
					last[key] = before + piece
				case value != nil:
					last[key] = value
				}
			}
			return
		}
	}
	d.details = append(d.details, detail)
}

// keepMetadata sets the metadata that the next turn must send again.
func (d *chatDecoder) keepMetadata() {
	keep := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err != nil {
			return // cannot fail, because the value has been decoded from JSON
		}
		if d.reply.Metadata == nil {
			d.reply.Metadata = map[string]json.RawMessage{}
		}
		d.reply.Metadata[key] = raw
	}
	if d.details != nil {
		keep(detailsKey, d.details)
	}
	if d.thought && d.details == nil { // the details contain the same text
		keep(reasoningKey, d.reply.Reasoning)
	}
}

// usage reads the usage object, whose fields have different names at different vendors. Proxies for other protocols count cached
// tokens separately from the prompt, in which case the cached tokens exceed the prompt, or the total includes both.
func usage(raw json.RawMessage) (llm.Usage, bool) {
	v := wire.ReadCounts(raw)
	if v == nil {
		return llm.Usage{}, false
	}
	in, details := v.In("prompt_tokens_details"), v.In("completion_tokens_details")
	u := llm.Usage{
		InputTokens:       v.Known("prompt_tokens"),
		OutputTokens:      v.Known("completion_tokens"),
		CachedInputTokens: max(in.Of("cached_tokens"), v.Of("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")),
		CacheWriteTokens:  max(in.Of("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens"), v.Of("cache_creation_input_tokens")),
		ReasoningTokens:   details.Of("reasoning_tokens"),
		Raw:               raw,
	}
	if u.InputTokens == nil && u.OutputTokens == nil {
		return llm.Usage{}, false
	}
	said, total, cached := v.Of("prompt_tokens")+v.Of("completion_tokens"), v.Of("total_tokens"), u.CachedInputTokens+u.CacheWriteTokens
	u.ReasoningApart = u.InputTokens != nil && u.OutputTokens != nil && u.ReasoningTokens > 0 && total == said+u.ReasoningTokens
	if u.InputTokens != nil && cached > 0 && (cached > *u.InputTokens || total == said+cached && !u.ReasoningApart) {
		u.InputTokens = new(*u.InputTokens + cached)
	}
	return u, true
}

// vendorUsage stores the usage from a vendor's own field, for answers without the standard field.
func (d *chatDecoder) vendorUsage(c *chunk) {
	if c.Groq != nil {
		if u, ok := usage(c.Groq.Usage); ok {
			u.Vendor = "x_groq"
			d.vendor = u
		}
	}
	var t struct {
		Prompt    *float64 `json:"prompt_n"`
		Predicted *float64 `json:"predicted_n"`
		Cached    float64  `json:"cache_n"`
	}
	if len(c.Timings) > 0 && json.Unmarshal(c.Timings, &t) == nil && t.Predicted != nil {
		if t.Prompt != nil {
			*t.Prompt += t.Cached // prompt_n does not include cached tokens
		}
		d.vendor = llm.Usage{
			InputTokens: whole(t.Prompt), OutputTokens: whole(t.Predicted),
			CachedInputTokens: int(t.Cached), Vendor: "timings", Raw: c.Timings,
		}
	}
}

// chunkError returns the error in a chunk, which may contain other fields as well. Empty fields are ignored.
func (d *chatDecoder) chunkError(name string, data []byte, c *chunk) error {
	bare := len(c.Choices) == 0 && name == "" && !d.finished && c.Object == "" && len(c.Usage) == 0 && (wire.Says(c.Message) || wire.Says(c.Detail))
	if name == "error" || c.Object == "error" || wire.Says(c.Error) || bare {
		return failure(data, d.reply.RequestID)
	}
	return nil
}

// Sources: OpenAI, API reference, "Create chat completion" and "Create a model response". Responses supports neither stop nor
// seed.

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
