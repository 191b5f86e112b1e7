package script

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// wireRequest contains the fields that are read from a request of any protocol.
type wireRequest struct {
	Model           string          `json:"model"`
	System          json.RawMessage `json:"system"`
	Messages        []wireMessage   `json:"messages"`
	MaxTokens       int             `json:"max_tokens"`
	CompletionLimit int             `json:"max_completion_tokens"`
	Tools           []wireTool      `json:"tools"`
	ResponseFormat  *struct {
		JSONSchema llm.Format `json:"json_schema"`
	} `json:"response_format"`
	OutputConfig struct {
		Format *llm.Format `json:"format"`
	} `json:"output_config"`

	// Fields of the Responses protocol.
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	OutputLimit  int             `json:"max_output_tokens"`
	Text         struct {
		Format *llm.Format `json:"format"`
	} `json:"text"`
}

type wireMessage struct {
	Role       llm.Role        `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type wireTool struct {
	llm.Tool
	InputSchema json.RawMessage `json:"input_schema"`
	Parameters  json.RawMessage `json:"parameters"`
	Function    struct {
		llm.Tool
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// wireBlock is a part of a message's content.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// parse reads a request to an endpoint, which is the last element of the path. Media are left out.
func parse(body []byte, endpoint string) (*llm.Request, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &llm.Request{Model: w.Model, System: textOf(w.System), MaxTokens: max(w.MaxTokens, w.CompletionLimit), ResponseFormat: w.OutputConfig.Format}
	if endpoint == "responses" {
		req.System, req.MaxTokens, req.ResponseFormat = w.Instructions, w.OutputLimit, w.Text.Format
		var err error
		if req.Messages, err = conversation(w.Input); err != nil {
			return nil, err
		}
	}
	if w.ResponseFormat != nil {
		req.ResponseFormat = &w.ResponseFormat.JSONSchema
	}
	for _, t := range w.Tools {
		tool := t.Tool
		switch endpoint {
		case "messages":
			tool.Schema = t.InputSchema
		case "responses":
			tool.Schema = t.Parameters
		default:
			tool = t.Function.Tool
			tool.Schema = t.Function.Parameters
		}
		req.Tools = append(req.Tools, tool)
	}
	for _, m := range w.Messages {
		switch {
		case m.Role == llm.RoleSystem && req.System == "" && len(req.Messages) == 0:
			req.System = textOf(m.Content)
		case endpoint == "messages":
			req.Messages = append(req.Messages, m.turns()...)
		default:
			req.Messages = append(req.Messages, m.message())
		}
	}
	return req, nil
}

// message reads a message of Chat Completions.
func (m wireMessage) message() llm.Message {
	out := llm.Message{Role: m.Role, CallID: m.ToolCallID}
	if s := textOf(m.Content); s != "" {
		out.Content = []llm.Part{{Text: s}}
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
	}
	return out
}

// turns reads a message of the Messages protocol, in which tool results are parts.
func (m wireMessage) turns() []llm.Message {
	var results []llm.Message
	rest := llm.Message{Role: m.Role}
	var said strings.Builder
	for _, b := range blocks(m.Content) {
		switch b.Type {
		case "text":
			said.WriteString(b.Text)
		case "tool_use":
			rest.ToolCalls = append(rest.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input})
		case "tool_result":
			result := llm.ToolResult(b.ToolUseID, textOf(b.Content))
			result.IsError = b.IsError
			results = append(results, result)
		}
	}
	if said.Len() > 0 {
		rest.Content = []llm.Part{{Text: said.String()}}
	}
	if said.Len() > 0 || len(rest.ToolCalls) > 0 {
		results = append(results, rest)
	}
	return results
}

// blocks reads content that is a string or a list.
func blocks(raw json.RawMessage) []wireBlock {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []wireBlock{{Type: "text", Text: s}}
	}
	var list []wireBlock
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func textOf(raw json.RawMessage) string {
	var b strings.Builder
	for _, block := range blocks(raw) {
		b.WriteString(block.Text)
	}
	return b.String()
}
