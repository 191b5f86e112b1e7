package anthropic

import (
	"maps"
	"slices"

	"github.com/stonelayer/stone/llm"
)

// maxMarks is the maximum number of blocks with cache_control in a request. This and the following rules come from the page
// "Prompt caching" of Anthropic's documentation: the server caches the prefix that ends with a marked block, in the order tools,
// system, messages. For each mark, it looks for a cached prefix at most 20 blocks back.
const maxMarks = 4

// mark marks the blocks up to which the next request of a conversation will have the same prefix: the system text, the last tool
// and the user's last block. Another mark is set where the previous request ended, because a turn with many tool calls can be
// longer than the server looks back. The caller's own marks count first.
func mark(body object, req *llm.Request, turns []turnBlocks) {
	left := maxMarks
	for _, m := range req.Messages {
		if m.Metadata[cacheKey] != nil {
			left--
		}
	}
	control := object{"type": "ephemeral"}
	if ttl := req.Params.CacheTTL; ttl != "" {
		control["ttl"] = ttl
	}
	put := func(block any) any {
		b, ok := block.(object)
		if !ok || left <= 0 || b["cache_control"] != nil {
			return block
		}
		left--
		b = maps.Clone(b)
		b["cache_control"] = control
		return b
	}
	user := 0
	for i := len(turns) - 1; i >= 0 && user < 2; i-- {
		if turns[i].Role != "user" {
			continue
		}
		blocks := turns[i].Content
		last := len(blocks) - 1
		blocks[last] = put(blocks[last])
		if user++; user == 1 {
			if text, ok := body["system"].(string); ok {
				body["system"] = []any{put(object{"type": "text", "text": text})}
			}
		}
	}
	if tools, ok := body["tools"].([]object); ok {
		tools = slices.Clone(tools)
		tools[len(tools)-1] = put(tools[len(tools)-1]).(object)
		body["tools"] = tools
	}
}
