package openai

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// reasoningText returns the readable reasoning of a delta. Servers repeat the same text in
// several fields; the first non-empty one counts.
func (d *chatDecoder) reasoningText(in *delta) string {
	details := d.addDetails(in.ReasoningDetails)
	if s, ok := str(in.ReasoningContent); ok && s != "" {
		return s
	}
	if s, ok := str(in.Reasoning); ok && s != "" {
		return s
	}
	return details
}

// addDetails keeps reasoning details, which must be sent again in the next turn, and
// returns their readable text.
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

// addDetail appends a detail, or extends the last one by its next piece.
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
			return // came out of JSON and goes back into it
		}
		if d.reply.Metadata == nil {
			d.reply.Metadata = map[string]json.RawMessage{}
		}
		d.reply.Metadata[key] = raw
	}
	if d.details != nil {
		keep(detailsKey, d.details)
	}
	if d.config.EchoReasoning && d.reply.Reasoning != "" {
		keep(reasoningKey, d.reply.Reasoning)
	}
}

// usage reads the usage object under the different names of the vendors.
func usage(raw json.RawMessage) (llm.Usage, bool) {
	var v struct {
		Prompt     *float64 `json:"prompt_tokens"`
		Completion *float64 `json:"completion_tokens"`
		Total      float64  `json:"total_tokens"`
		In         struct {
			Cached  float64 `json:"cached_tokens"`
			Written float64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Cached   float64 `json:"cached_tokens"`
		CacheHit float64 `json:"prompt_cache_hit_tokens"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &v) != nil {
		return llm.Usage{}, false
	}
	reasoning := v.Out.Reasoning
	apart := v.Prompt != nil && v.Completion != nil && reasoning > 0 && v.Total == *v.Prompt+*v.Completion+reasoning
	u := llm.Usage{
		InputTokens:       whole(v.Prompt),
		OutputTokens:      whole(v.Completion),
		CachedInputTokens: int(max(v.In.Cached, v.Cached, v.CacheHit)),
		CacheWriteTokens:  int(v.In.Written),
		ReasoningTokens:   int(reasoning),
		ReasoningApart:    apart,
		Raw:               raw,
	}
	return u, u.InputTokens != nil || u.OutputTokens != nil
}

// vendorUsage keeps the usage in a vendor's own field, for answers that have no other.
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
			*t.Prompt += t.Cached // prompt_n counts only what was not in the cache
		}
		d.vendor = llm.Usage{
			InputTokens: whole(t.Prompt), OutputTokens: whole(t.Predicted),
			CachedInputTokens: int(t.Cached), Vendor: "timings", Raw: c.Timings,
		}
	}
}

// chunkError returns the error in a chunk, which may contain other fields as well.
func (d *chatDecoder) chunkError(name string, data []byte, c *chunk) error {
	present := len(c.Error) > 0 && string(c.Error) != "null"
	bare := len(c.Choices) == 0 && (len(c.Message) > 0 || len(c.Detail) > 0)
	if name == "error" || c.Object == "error" || present || bare {
		return failure(data, d.reply.RequestID)
	}
	return nil
}
