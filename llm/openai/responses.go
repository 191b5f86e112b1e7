package openai

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Keys of Message.Metadata.
const (
	outputKey   = "openai/output"   // the items of a response, to be sent again
	responseKey = "openai/response" // the ID of a stored response
)

// encrypted requests reasoning that can be sent back to a server that has not stored it.
const encrypted = "reasoning.encrypted_content"

var responsesDialect = dialect{
	protocol: rules.Responses,
	endpoint: "/responses",
	params:   responsesParams,
	media:    responsesMedia,
	reserved: []string{"model", "input", "instructions", "max_output_tokens", "previous_response_id", "tools", "stream"},
	body:     (*Model).responsesBody,
	decoder: func(m *Model, id string) wire.Decoder {
		return &responsesDecoder{stateful: m.config.Stateful, reply: llm.Reply{RequestID: id}}
	},
}

// responsesBody returns the body of a request.
func (m *Model) responsesBody(req *llm.Request, model string, way wire.Way) (object, error) {
	c := &m.config
	body := object{"model": model, "stream": true, "store": c.Stateful}
	messages := req.Messages
	if c.Stateful {
		if id, rest := stored(messages); id != "" {
			body["previous_response_id"], messages = id, rest
		}
	}
	input := make([]any, 0, len(messages))
	for _, msg := range messages {
		input = append(input, inputItems(msg)...)
	}
	body["input"] = input
	strict, system := m.Schema(structured.OpenAI, req.ResponseFormat, way, req.System)
	if system != "" {
		body["instructions"] = system
	}
	if req.MaxTokens > 0 {
		body["max_output_tokens"] = req.MaxTokens
	}
	if len(req.Tools) > 0 {
		functions, hosted, err := wire.Hosted("responses", req.Tools)
		if err != nil {
			return nil, err
		}
		body["tools"] = append(responsesTools(functions, m.Own()), hosted...)
	}
	if reasons(model) {
		body["include"] = []string{encrypted}
	}
	m.routed(body, req)
	wire.Merge(body, c.Extra)
	if f := req.ResponseFormat; f != nil && way != wire.Told {
		// Extra may contain other settings of the text, such as the verbosity.
		text := object{}
		if own, ok := body["text"].(object); ok {
			maps.Copy(text, own)
		}
		text["format"] = jsonMode
		if way == wire.Enforced {
			format := jsonSchema(f, strict)
			format["type"] = "json_schema"
			text["format"] = format
		}
		body["text"] = text
	}
	return body, nil
}

// reasons reports whether a model may reason. OpenAI's older models do not, and reject requests for encrypted reasoning.
func reasons(model string) bool {
	if name, ok := strings.CutPrefix(model, "ft:"); ok {
		model = name
	}
	older := func(prefix string) bool { return strings.HasPrefix(model, prefix) }
	return !slices.ContainsFunc([]string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"}, older)
}

// stored returns the ID of the last response that the server has stored, and the messages after it.
func stored(messages []llm.Message) (id string, rest []llm.Message) {
	for i := len(messages) - 2; i >= 0; i-- { // at least one message must follow it
		if id, ok := str(messages[i].Metadata[responseKey]); ok {
			return id, messages[i+1:]
		}
	}
	return "", messages
}

// inputItems returns a message as input items.
func inputItems(m llm.Message) []any {
	switch m.Role {
	case llm.RoleAssistant:
		return assistantItems(m)
	case llm.RoleTool:
		return []any{object{"type": "function_call_output", "call_id": m.CallID, "output": content(m, "input_text", inputMedia)}}
	}
	return []any{object{"type": "message", "role": m.Role, "content": content(m, "input_text", inputMedia)}}
}

// assistantItems returns the items that were received for a message, if the message is unchanged. Reasoning belongs to the items
// that follow it, so a changed message is sent without reasoning.
func assistantItems(m llm.Message) []any {
	if items := keptItems(m); items != nil {
		return items
	}
	var items []any
	if text := m.Text(); text != "" {
		items = append(items, object{"type": "message", "role": "assistant", "content": text})
	}
	for _, call := range m.ToolCalls {
		items = append(items, object{"type": "function_call", "call_id": call.ID, "name": call.Name, "arguments": sentArguments(call)})
	}
	return items
}

// keptItems returns the items that were received for an unchanged message. Reasoning without encrypted content cannot be sent
// again, because the server would look for its ID but has not stored it. The IDs of dependent items cannot be sent either.
func keptItems(m llm.Message) []any {
	var list []map[string]json.RawMessage
	if json.Unmarshal(m.Metadata[outputKey], &list) != nil {
		return nil
	}
	var text, refusal strings.Builder
	var calls []string
	anonymous := false
	for _, fields := range list {
		in := readItem(fields)
		switch in.Type {
		case "message":
			text.WriteString(in.text())
			refusal.WriteString(in.refusal())
		case "function_call":
			calls = append(calls, in.CallID)
		case "reasoning":
			anonymous = anonymous || in.Encrypted == ""
		}
	}
	same := cmp.Or(text.String(), refusal.String()) == m.Text() &&
		slices.EqualFunc(calls, m.ToolCalls, func(id string, c llm.ToolCall) bool { return id == c.ID })
	if !same {
		return nil
	}
	items := make([]any, 0, len(list))
	for _, fields := range list {
		in := readItem(fields)
		if in.Type == "reasoning" && in.Encrypted == "" {
			continue
		}
		if anonymous && (in.Type == "message" || in.Type == "function_call") {
			delete(fields, "id")
		}
		items = append(items, fields)
	}
	return items
}

func responsesTools(list []llm.Tool, strict bool) []object {
	wired := wire.Tools(structured.OpenAI, list, "parameters", strict)
	for _, tool := range wired {
		tool["type"] = "function"
		if tool["strict"] == nil {
			tool["strict"] = false // by default, strict is true and most schemas are rejected
		}
	}
	return wired
}
