package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Keys of Message.Metadata.
const (
	contentKey = "anthropic/content"
	cacheKey   = "anthropic/cache_control"
)

type object = map[string]any

// turnBlocks is a message in the protocol's format.
type turnBlocks struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// fields returns the fields of the request.
func (m *Model) fields(req *llm.Request, model string, way wire.Way) (object, error) {
	c := &m.config
	system, messages, err := conversation(req)
	if err != nil {
		return nil, err
	}
	body := object{"model": model, "messages": messages, "max_tokens": cmp.Or(req.MaxTokens, defaultMax), "stream": true}
	format, system := m.Schema(structured.Anthropic, req.ResponseFormat, way, system)
	if system != "" {
		body["system"] = system
	}
	if len(req.Tools) > 0 {
		functions, hosted, err := wire.Hosted("anthropic", req.Tools)
		if err != nil {
			return nil, err
		}
		body["tools"] = append(wire.Tools(structured.Anthropic, functions, "input_schema", m.strict()), hosted...)
	}
	if req.Cache {
		mark(body, req, messages)
	}
	wire.Merge(body, c.Extra)
	if thinking, ok := body["thinking"].(object); ok && thinking["type"] == "enabled" && !thought(messages) {
		delete(body, "thinking")
	}
	if format != nil {
		// Extra may contain other output settings, such as the effort.
		output := object{}
		if own, ok := body["output_config"].(object); ok {
			maps.Copy(output, own)
		}
		output["format"] = object{"type": "json_schema", "schema": format}
		body["output_config"] = output
	}
	return body, nil
}

// thought reports whether each answer since the last user message begins with thinking. The protocol requires this if thinking is
// enabled and tools are in use. An answer from another model, before a fallback, does not begin with thinking. Source: Anthropic,
// guide "Extended thinking", section "Toggling thinking modes in conversations"; reports from 2025.
func thought(turns []turnBlocks) bool {
	for i := len(turns) - 1; i >= 0; i-- {
		first := turns[i].Content[0]
		block, _ := first.(object)
		if turns[i].Role == "user" && block["type"] != "tool_result" {
			return true
		}
		if turns[i].Role == "user" {
			continue
		}
		var kept receivedBlock
		if raw, ok := first.(json.RawMessage); !ok || json.Unmarshal(raw, &kept) != nil || !strings.HasSuffix(kept.Type, "thinking") {
			return false
		}
	}
	return true
}

// conversation returns alternating turns, as the protocol requires. The results of all tool calls in a turn form one user turn.
func conversation(req *llm.Request) (system string, turns []turnBlocks, err error) {
	instructions := []string{}
	if req.System != "" {
		instructions = append(instructions, req.System)
	}
	for i, m := range req.Messages {
		if m.Role == llm.RoleSystem {
			instructions = append(instructions, m.Text())
			continue
		}
		role, blocks := message(m)
		if len(blocks) == 0 {
			continue // the protocol does not allow empty turns
		}
		if err := cache(m, blocks); err != nil {
			return "", nil, fmt.Errorf("message %d: %w", i, err)
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
			continue
		}
		turns = append(turns, turnBlocks{role, blocks})
	}
	return strings.Join(instructions, "\n\n"), turns, nil
}

func message(m llm.Message) (role string, blocks []any) {
	switch m.Role {
	case llm.RoleAssistant:
		return "assistant", assistantBlocks(m)
	case llm.RoleTool:
		result := object{"type": "tool_result", "tool_use_id": m.CallID}
		content := contentBlocks(m.Content)
		if m.IsError {
			result["is_error"] = true
			if len(content) == 0 { // users report that this is rejected
				content = []any{object{"type": "text", "text": "The call failed without a message."}}
			}
		}
		if len(content) > 0 {
			result["content"] = content
		}
		return "user", []any{result}
	}
	return "user", contentBlocks(m.Content)
}

// cache puts the message's cache control on its last block.
func cache(m llm.Message, blocks []any) error {
	control := m.Metadata[cacheKey]
	if control == nil {
		return nil
	}
	last := len(blocks) - 1
	if raw, ok := blocks[last].(json.RawMessage); ok {
		var block object
		if err := json.Unmarshal(raw, &block); err != nil {
			return err
		}
		blocks[last] = block
	}
	block := maps.Clone(blocks[last].(object))
	block["cache_control"] = control
	blocks[last] = block
	return nil
}

func contentBlocks(parts []llm.Part) (blocks []any) {
	for _, p := range parts {
		if p.Media != nil {
			blocks = append(blocks, mediaBlock(p.Media))
		} else if text := p.Text + string(p.Value); strings.TrimSpace(text) != "" { // users report that blank texts are rejected
			blocks = append(blocks, object{"type": "text", "text": text})
		}
	}
	return blocks
}

// assistantBlocks returns the blocks that were received for a message, if the metadata contains them and the message is
// unchanged. If the message was changed, only the thinking is kept, before everything else.
func assistantBlocks(m llm.Message) []any {
	var blocks []any
	if raw := received(m); raw != nil {
		if unchanged(m, raw) {
			for _, b := range raw {
				if b.Type != "text" || strings.TrimSpace(b.Text) != "" {
					blocks = append(blocks, b.raw)
				}
			}
			return blocks
		}
		for _, b := range raw {
			if b.Type == "thinking" || b.Type == "redacted_thinking" {
				blocks = append(blocks, b.raw)
			}
		}
	}
	if text := m.Text(); strings.TrimSpace(text) != "" {
		blocks = append(blocks, object{"type": "text", "text": text})
	}
	for _, call := range m.ToolCalls {
		input := call.Input
		if input == nil {
			input = json.RawMessage("{}") // the protocol requires an object even for cut-off arguments
		}
		blocks = append(blocks, object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": input})
	}
	return blocks
}

// receivedBlock is a block that is sent again verbatim.
type receivedBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
	ID   string `json:"id"`
	raw  json.RawMessage
}

func received(m llm.Message) []receivedBlock {
	var raws []json.RawMessage
	if json.Unmarshal(m.Metadata[contentKey], &raws) != nil {
		return nil
	}
	blocks := make([]receivedBlock, len(raws))
	for i, raw := range raws {
		if json.Unmarshal(raw, &blocks[i]) != nil {
			return nil
		}
		blocks[i].raw = raw
	}
	return blocks
}

func unchanged(m llm.Message, blocks []receivedBlock) bool {
	var text strings.Builder
	var calls []string
	for _, b := range blocks {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			calls = append(calls, b.ID)
		}
	}
	return text.String() == m.Text() &&
		slices.EqualFunc(calls, m.ToolCalls, func(id string, c llm.ToolCall) bool { return id == c.ID })
}

// params follow the page "Messages" in Anthropic's API reference and "Effort" in Anthropic's guide. Messages does not support a
// seed. The metadata of a request contains the user ID.
var params = wire.ParamRules{
	"temperature":  wire.Put("temperature"),
	"top_p":        wire.Put("top_p"),
	"stop":         wire.Put("stop_sequences"),
	"effort":       wire.Put("output_config", "effort"),
	"service_tier": wire.Put("service_tier"),
	"cache_ttl":    func(object, any) error { return nil }, // part of each cache mark
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

// strictRefusals are parts of the messages with which a provider rejects strict tools. Either the provider does not know the
// field, or the grammar compiled from all strict tools exceeds a size limit that is not published. Source: Anthropic, guide
// "Structured outputs", section "Additional internal limits"; anthropic-sdk-python issue 1185.
var strictRefusals = []string{"strict", "too complex for compilation", "compiled grammar is too large"}

// strict reports whether tools are strict where possible. Other servers that implement the protocol, and older models, may not
// know the field.
func (m *Model) strict() bool { return m.Own() && !m.loose.Load() }

// refusesStrict reports whether the provider rejected a request because of its strict tools.
func refusesStrict(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || refused.Status != http.StatusBadRequest {
		return false
	}
	for _, part := range strictRefusals {
		if strings.Contains(refused.Body, part) {
			return true
		}
	}
	return false
}
