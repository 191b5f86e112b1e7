package spans

import (
	"encoding/json"
	"log/slog"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/bounds"
)

// JSON is the value of an attribute that is sent without truncation.
type JSON string

// Limits on models' texts in attributes.
const (
	maxPart     = 16 << 10  // maximum size of a part in bytes
	maxMessages = 128 << 10 // maximum size of all messages in bytes; the oldest are omitted
)

// A message is a message in the format of the conventions.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

func text(kind, content string) part {
	return part{Type: kind, Content: bounds.Cut(content, maxPart)}
}

// A said is a message in the format of package llm.
type said struct {
	Role    string `json:"role"`
	Content []struct {
		Text  string          `json:"text"`
		Value json.RawMessage `json:"value"`
	} `json:"content"`
	ToolCalls []toolCall `json:"tool_calls"`
	CallID    string     `json:"call_id"`
}

type toolCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// decode converts the data of an event, a Go value or JSON, to a type of this package.
func decode(v, to any) {
	if data, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(data, to) // an event of a different version may not match; its messages are omitted
	}
}

// contents returns the attributes that contain the texts of an event.
func contents(d event.Data) (attrs []slog.Attr) {
	add := func(key string, v any) {
		if data, err := json.Marshal(v); err == nil && string(data) != "null" && string(data) != "[]" {
			attrs = append(attrs, slog.Any(key, JSON(data)))
		}
	}
	switch d := d.(type) {
	case event.ModelRequest:
		if d.System != "" {
			add(System, []part{text("text", d.System)})
		}
		var sent []said
		decode(d.Messages, &sent)
		add(InputMessages, newest(sent))
		add(ToolDefinitions, d.Tools)
	case event.ModelResponse:
		if r := d.Reply; r != nil {
			m := message{Role: "assistant", FinishReason: r.StopReason}
			for _, p := range []part{text("reasoning", r.Reasoning), text("text", r.Text), text("text", r.Refusal)} {
				if p.Content != "" {
					m.Parts = append(m.Parts, p)
				}
			}
			var asked []toolCall
			decode(r.ToolCalls, &asked)
			add(OutputMessages, []message{m.calling(asked)})
		}
	case event.ToolStarted:
		add(ToolArguments, d.Input)
	case event.ToolDone:
		if d.Text != "" {
			attrs = append(attrs, slog.Any(ToolResult, JSON(bounds.Cut(d.Text, maxPart))))
		}
	}
	return attrs
}

// newest returns the last messages, as many as the limits allow.
func newest(all []said) (out []message) {
	left := maxMessages
	for i := len(all) - 1; i >= 0 && left > 0; i-- {
		m := message{Role: all[i].Role}
		for _, c := range all[i].Content {
			if c.Text == "" {
				c.Text = string(c.Value)
			}
			p := text("text", c.Text)
			if all[i].CallID != "" {
				p = part{Type: "tool_call_response", ID: all[i].CallID, Response: p.Content}
			}
			left -= len(p.Content) + len(p.Response)
			m.Parts = append(m.Parts, p)
		}
		out = append([]message{m.calling(all[i].ToolCalls)}, out...)
	}
	return out
}

func (m message) calling(asked []toolCall) message {
	for _, c := range asked {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: c.Input})
	}
	return m
}
