package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
	"github.com/stonelayer/stone/llm/structured"
)

// Keys of Message.Metadata.
const (
	detailsKey   = "openai/reasoning_details"
	reasoningKey = "openai/reasoning_content"
)

type object = map[string]any

// body returns the JSON of the request.
func (m *Model) body(req *llm.Request) ([]byte, error) {
	return m.Body(req, func(model string) (object, error) { return m.fields(req, model) })
}

func (m *Model) fields(req *llm.Request, model string) (object, error) {
	c := &m.config
	strict, system := m.Enforced(structured.OpenAI, req.ResponseFormat, req.System)
	messages := make([]object, 0, len(req.Messages)+1)
	if system != "" {
		messages = append(messages, object{"role": "system", "content": system})
	}
	for i, msg := range req.Messages {
		wired, err := c.message(msg)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		messages = append(messages, wired)
	}
	body := object{
		"model": model, "messages": messages,
		"stream": true, "stream_options": object{"include_usage": true},
	}
	if limit := cmp.Or(req.MaxTokens, c.MaxTokens); limit > 0 {
		body[c.MaxTokensField] = limit
	}
	if len(req.Tools) > 0 {
		body["tools"] = tools(req.Tools)
	}
	if f := req.ResponseFormat; f != nil {
		body["response_format"] = format(f, strict)
	}
	wire.Merge(body, c.Extra)
	return body, nil
}

func (c *Config) message(m llm.Message) (object, error) {
	wired := object{"role": m.Role}
	content, err := content(m)
	if err != nil {
		return nil, err
	}
	wired["content"] = content
	switch m.Role {
	case llm.RoleSystem, llm.RoleUser:
	case llm.RoleTool:
		wired["tool_call_id"] = m.CallID
	case llm.RoleAssistant:
		if len(m.ToolCalls) > 0 {
			if content == "" {
				wired["content"] = nil
			}
			wired["tool_calls"] = calls(m.ToolCalls)
		}
		if details := m.Metadata[detailsKey]; details != nil {
			wired["reasoning_details"] = details
		}
		if reasoning := m.Metadata[reasoningKey]; reasoning != nil && c.EchoReasoning {
			wired["reasoning_content"] = reasoning
		}
	default:
		return nil, fmt.Errorf("unknown role %q: use system, user, assistant or tool", m.Role)
	}
	return wired, nil
}

// content returns a string, or a list of parts if the message has more than text.
func content(m llm.Message) (any, error) {
	media := false
	for _, p := range m.Content {
		media = media || p.Media != nil
	}
	if !media {
		return m.Text(), nil
	}
	parts := make([]object, 0, len(m.Content))
	for _, p := range m.Content {
		if p.Media == nil {
			parts = append(parts, object{"type": "text", "text": p.Text + string(p.Value)})
			continue
		}
		part, err := mediaPart(p.Media)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func mediaPart(m *llm.Media) (object, error) {
	kind, subtype, _ := strings.Cut(m.Type, "/")
	url := m.URL
	if url == "" {
		url = "data:" + m.Type + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
	}
	switch {
	case kind == "image":
		return object{"type": "image_url", "image_url": object{"url": url}}, nil
	case m.URL != "":
		return nil, fmt.Errorf("media of type %q by URL: Chat Completions takes only images by URL, set Data", m.Type)
	case kind == "audio":
		return object{"type": "input_audio", "input_audio": object{"data": m.Data, "format": audioFormat(subtype)}}, nil
	}
	name := m.Name
	if name == "" {
		name = "file"
	}
	return object{"type": "file", "file": object{"filename": name, "file_data": url}}, nil
}

func audioFormat(subtype string) string {
	if subtype == "mpeg" {
		return "mp3"
	}
	return strings.TrimPrefix(subtype, "x-")
}

// calls renders earlier tool calls. Servers parse the arguments again, so truncated
// arguments are sent as {}.
func calls(list []llm.ToolCall) []object {
	wired := make([]object, len(list))
	for i, call := range list {
		args := "{}"
		if call.Input != nil {
			args = string(call.Input)
		}
		wired[i] = object{
			"id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": args},
		}
	}
	return wired
}

func tools(list []llm.Tool) []object {
	wired := make([]object, len(list))
	for i, tool := range list {
		f := object{"name": tool.Name, "parameters": wire.ToolSchema(tool)}
		if tool.Description != "" {
			f["description"] = tool.Description
		}
		wired[i] = object{"type": "function", "function": f}
	}
	return wired
}

// format returns the response format, in strict mode if the schema can be enforced.
func format(f *llm.Format, strict json.RawMessage) object {
	schema := object{"name": cmp.Or(f.Name, "answer"), "schema": f.Schema}
	if strict != nil {
		schema["schema"], schema["strict"] = strict, true
	}
	return object{"type": "json_schema", "json_schema": schema}
}
