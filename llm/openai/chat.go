package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Keys of Message.Metadata.
const (
	detailsKey   = "openai/reasoning_details"
	reasoningKey = "openai/reasoning_content"
)

// kept are the keys of metadata that only the server which sent it understands.
var kept = []string{detailsKey, reasoningKey, outputKey, responseKey}

var chatDialect = dialect{
	protocol: rules.Chat,
	endpoint: "/chat/completions",
	params:   chatParams,
	media:    chatMedia,
	reserved: []string{"model", "messages", "max_tokens", "n", "tools", "response_format", "stream"},
	body:     (*Model).chatBody,
	decoder:  func(m *Model, id string) wire.Decoder { return newChatDecoder(&m.config, id) },
}

// maxTokensField returns the name of the field for the answer limit, depending on the host. OpenAI's newer models reject the old
// name; other servers may not know the new one.
func maxTokensField(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	if host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// chatBody returns the body of a request.
func (m *Model) chatBody(req *llm.Request, model string, way wire.Way) (object, error) {
	c := &m.config
	strict, system := m.Schema(structured.OpenAI, req.ResponseFormat, way, req.System)
	messages := make([]object, 0, len(req.Messages)+1)
	if system != "" {
		messages = append(messages, object{"role": "system", "content": system})
	}
	// Tool results can only be text. Source: API reference, "Create chat completion", tool message.
	for _, msg := range wire.AfterResults(req.Messages, func(*llm.Media) bool { return false }) {
		messages = together(messages, m.message(msg))
	}
	body := object{
		"model": model, "messages": messages,
		"stream": true, "stream_options": object{"include_usage": true},
	}
	if req.MaxTokens > 0 {
		body[m.maxField()] = req.MaxTokens
	}
	if len(req.Tools) > 0 {
		functions, hosted, err := wire.Hosted("openai", req.Tools)
		if err != nil {
			return nil, err
		}
		body["tools"] = append(chatTools(functions, m.Own()), hosted...)
	}
	if f := req.ResponseFormat; f != nil {
		switch way {
		case wire.Enforced:
			body["response_format"] = object{"type": "json_schema", "json_schema": jsonSchema(f, strict)}
		case wire.JSONMode:
			body["response_format"] = jsonMode
		}
	}
	m.routed(body, req)
	for i, field := range optional { // omit the fields that the server has rejected
		if m.dropped.Load()&(1<<i) != 0 {
			delete(body, field)
		}
	}
	wire.Merge(body, c.Extra)
	return body, nil
}

// routed sends the requests of a conversation to the server that caches its prompt. Other servers may reject the field. Source:
// OpenAI, guide "Prompt caching".
func (m *Model) routed(body object, req *llm.Request) {
	if !req.Cache || req.Conversation == "" || !m.Own() {
		return
	}
	sum := sha256.Sum256([]byte(req.Conversation)) // hashed, because run names are private
	body["prompt_cache_key"] = hex.EncodeToString(sum[:16])
}

// together adds a message, or joins it with the preceding user message, because the templates of open models expect user and
// assistant to alternate. Reported error: "Conversation roles must alternate user/assistant/user/assistant/...".
func together(messages []object, next object) []object {
	n := len(messages)
	if n == 0 || messages[n-1]["role"] != llm.RoleUser || next["role"] != llm.RoleUser {
		return append(messages, next)
	}
	before, isText := messages[n-1]["content"].(string)
	after, isTextToo := next["content"].(string)
	var content any = before + "\n\n" + after
	if !isText || !isTextToo {
		content = slices.Concat(partsOf(messages[n-1]["content"]), partsOf(next["content"]))
	}
	messages[n-1] = object{"role": llm.RoleUser, "content": content}
	return messages
}

func partsOf(content any) []object {
	if text, ok := content.(string); ok {
		return []object{{"type": "text", "text": text}}
	}
	return content.([]object)
}

func (model *Model) message(m llm.Message) object {
	content := content(m, "text", mediaPart)
	wired := object{"role": m.Role, "content": content}
	switch m.Role {
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
		model.echo.put(wired, m)
	}
	return wired
}

// calls returns earlier tool calls in the protocol's format.
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

// sentArguments returns the arguments of an earlier call. Servers parse arguments again, so truncated arguments are sent as {}.
func sentArguments(call llm.ToolCall) string {
	if call.Input == nil {
		return "{}"
	}
	return string(call.Input)
}

func chatTools(list []llm.Tool, strict bool) []object {
	wired := wire.Tools(structured.OpenAI, list, "parameters", strict)
	for i, function := range wired {
		wired[i] = object{"type": "function", "function": function}
	}
	return wired
}

// jsonMode requests JSON without a schema, in both protocols.
var jsonMode = object{"type": "json_object"}

// jsonSchema returns a response format with a schema, for both protocols. It is strict if the schema can be enforced.
func jsonSchema(f *llm.Format, strict json.RawMessage) object {
	schema := object{"name": cmp.Or(f.Name, "answer"), "schema": f.Schema}
	if strict != nil {
		schema["schema"], schema["strict"] = strict, true
	}
	return schema
}
