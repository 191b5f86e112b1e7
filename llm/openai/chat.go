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

var chatDialect = dialect{
	endpoint: "/chat/completions",
	params:   chatParams,
	reserved: []string{"model", "messages", "max_tokens", "tools", "response_format", "stream"},
	body:     (*Model).chatBody,
	decoder:  func(m *Model, id string) wire.Decoder { return newChatDecoder(&m.config, id) },
}

// maxTokensField returns the field's name for the host. OpenAI's newer models refuse
// the old one; other servers may not know the new one.
func maxTokensField(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	if host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// chatBody returns the body of a request.
func (m *Model) chatBody(req *llm.Request, model string) (object, error) {
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
		body["tools"] = chatTools(req.Tools)
	}
	if f := req.ResponseFormat; f != nil {
		body["response_format"] = object{"type": "json_schema", "json_schema": jsonSchema(f, strict)}
	}
	wire.Merge(body, c.Extra)
	return body, nil
}

func (c *Config) message(m llm.Message) (object, error) {
	wired := object{"role": m.Role}
	content, err := content(m, "text", mediaPart)
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
		return nil, unknownRole(m.Role)
	}
	return wired, nil
}

// content returns a string, or a list of parts if the message has more than text: texts of the
// type, and what media makes of the rest.
func content(m llm.Message, text string, media func(*llm.Media) (object, error)) (any, error) {
	if !hasMedia(m) {
		return m.Text(), nil
	}
	parts := make([]object, 0, len(m.Content))
	for _, p := range m.Content {
		if p.Media == nil {
			parts = append(parts, object{"type": text, "text": p.Text + string(p.Value)})
			continue
		}
		part, err := media(p.Media)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func mediaPart(m *llm.Media) (object, error) {
	kind, subtype, _ := strings.Cut(m.Type, "/")
	url := address(m)
	switch {
	case kind == "image":
		return object{"type": "image_url", "image_url": object{"url": url}}, nil
	case m.URL != "":
		return nil, fmt.Errorf("media of type %q by URL: Chat Completions takes only images by URL, set Data", m.Type)
	case kind == "audio":
		return object{"type": "input_audio", "input_audio": object{"data": m.Data, "format": audioFormat(subtype)}}, nil
	}
	return object{"type": "file", "file": object{"filename": cmp.Or(m.Name, "file"), "file_data": url}}, nil
}

// address returns the URL of a medium, one with the data itself if it has no other.
func address(m *llm.Media) string {
	if m.URL != "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
}

func audioFormat(subtype string) string {
	if subtype == "mpeg" {
		return "mp3"
	}
	return strings.TrimPrefix(subtype, "x-")
}

// calls renders earlier tool calls.
func calls(list []llm.ToolCall) []object {
	wired := make([]object, len(list))
	for i, call := range list {
		wired[i] = object{
			"id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": sentArguments(call)},
		}
	}
	return wired
}

// sentArguments returns the arguments of an earlier call. Servers parse them again, so
// truncated ones are sent as {}.
func sentArguments(call llm.ToolCall) string {
	if call.Input == nil {
		return "{}"
	}
	return string(call.Input)
}

func chatTools(list []llm.Tool) []object {
	wired := wire.Tools(list, "parameters")
	for i, function := range wired {
		wired[i] = object{"type": "function", "function": function}
	}
	return wired
}

// jsonSchema returns the description of an answer that both protocols have, in strict mode if the
// schema can be enforced.
func jsonSchema(f *llm.Format, strict json.RawMessage) object {
	schema := object{"name": cmp.Or(f.Name, "answer"), "schema": f.Schema}
	if strict != nil {
		schema["schema"], schema["strict"] = strict, true
	}
	return schema
}
