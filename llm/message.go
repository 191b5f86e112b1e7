package llm

import (
	"encoding/json"
	"strings"
)

// Role is the role of a message's author.
type Role string

// The roles of a conversation.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // result of a tool call
)

// Message is one turn of a conversation. It can be encoded as JSON and decoded again without loss.
type Message struct {
	Role Role `json:"role"`
	// Content contains the parts of the message, in order. It is empty for an assistant message that only calls tools.
	Content []Part `json:"content,omitempty"`
	// ToolCalls are the calls that an assistant message requests.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// CallID is set only in a tool message: it is the ID of the call whose result the message contains.
	CallID string `json:"call_id,omitempty"`
	// IsError means that the tool message reports a failure.
	IsError bool `json:"is_error,omitempty"`
	// Metadata contains data for individual providers, under keys that begin with the provider's name, such as
	// "anthropic/cache_control".
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Part is a piece of a message's content. Exactly one field is set.
type Part struct {
	Text  string          `json:"text,omitempty"`
	Value json.RawMessage `json:"value,omitempty"` // structured content: any JSON value
	Media *Media          `json:"media,omitempty"`
}

// ToolCall is the model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input contains the arguments, or {} if there are none. It is nil if the arguments were cut off.
	Input json.RawMessage `json:"input"`
	// InputText is the part of the arguments that was received. It is set only if they were cut off.
	InputText string `json:"input_text,omitempty"`
}

// Tool is a function that the model may call. Schema is the JSON Schema of its
// input.
//
// A tool with Provider is hosted by the provider, such as the provider's web search. In place of the other fields, the object for
// the model's protocol is sent: "anthropic", "gemini", "openai" (Chat Completions) or "responses". If there is no object for the
// model's protocol, the request is rejected before anything is sent.
//
//	Tool{Name: "web_search", Provider: map[string]json.RawMessage{
//		"anthropic": json.RawMessage(`{"type":"web_search_20250305","name":"web_search","max_uses":5}`),
//		"responses": json.RawMessage(`{"type":"web_search"}`),
//		"gemini":    json.RawMessage(`{"google_search":{}}`),
//	}}
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	// Provider contains the provider's own object for each protocol.
	Provider map[string]json.RawMessage `json:"provider,omitempty"`
}

// User returns a user message that contains the media, followed by the text.
func User(text string, media ...*Media) Message {
	parts := make([]Part, 0, len(media)+1)
	for _, m := range media {
		if m != nil {
			parts = append(parts, Part{Media: m})
		}
	}
	if text != "" || len(parts) == 0 {
		parts = append(parts, Part{Text: text})
	}
	return Message{Role: RoleUser, Content: parts}
}

// Assistant returns an assistant message with the given text.
func Assistant(text string) Message {
	return Message{Role: RoleAssistant, Content: []Part{{Text: text}}}
}

// ToolResult returns a tool message with the result of the call whose ID is callID.
func ToolResult(callID, text string) Message {
	return Message{Role: RoleTool, CallID: callID, Content: []Part{{Text: text}}}
}

// Text returns the message's content as plain text: text parts unchanged, structured
// parts as JSON, without media. Parts are joined without a separator.
func (m Message) Text() string {
	if len(m.Content) == 1 && m.Content[0].Value == nil {
		return m.Content[0].Text
	}
	var b strings.Builder
	for _, p := range m.Content {
		b.WriteString(p.Text)
		b.Write(p.Value)
	}
	return b.String()
}

// Media returns the media of the message, in order, or nil if it has none.
func (m *Message) Media() (media []*Media) {
	for _, p := range m.Content {
		if p.Media != nil {
			media = append(media, p.Media)
		}
	}
	return media
}
