package agui

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/llm"
)

// Input contains those fields of a RunAgentInput that are used.
type Input struct {
	turn.Request
	Thread, Run string            // ids chosen by the client
	Messages    []json.RawMessage // the conversation as the client has it
}

type message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// Read parses a request. The state, the context and forwarded properties are ignored.
func Read(body []byte) (in Input, err error) {
	var raw struct {
		Thread   string            `json:"threadId"`
		Run      string            `json:"runId"`
		Messages []json.RawMessage `json:"messages"`
		Tools    []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
		Resume []struct {
			InterruptID string          `json:"interruptId"`
			Status      string          `json:"status"`
			Payload     json.RawMessage `json:"payload"`
		} `json:"resume"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return in, fmt.Errorf("the body is not a RunAgentInput of AG-UI: %w", err)
	}
	in.Thread, in.Run, in.Messages, in.Chat = raw.Thread, raw.Run, raw.Messages, raw.Thread
	if in.Run == "" {
		return in, fmt.Errorf("the runId is missing: want an id of the client's choice")
	}
	for _, t := range raw.Tools {
		in.Tools = append(in.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
	}
	for _, r := range raw.Resume {
		a, err := answer(r.Status, r.Payload)
		if err != nil {
			return in, fmt.Errorf("resume: the entry of %.100q: %w", r.InterruptID, err)
		}
		a.ID = r.InterruptID
		in.Answers = append(in.Answers, a)
	}
	last, err := in.see()
	answers := len(in.Answers)+len(in.Results) > 0
	reason := slices.ContainsFunc(in.Answers, func(a turn.Answer) bool { return a.Cancel }) // the message gives the reason for the answer
	switch {
	case err != nil, answers && !(reason && last != nil && last.Role == "user"):
		return in, err
	case last == nil:
		in.Join = true
		return in, nil
	case last.Role != "user":
		return in, turn.ErrNothing
	}
	in.Message = last.ID
	in.Content, err = content(last.Content)
	if err == nil && len(in.Content) == 0 && !answers {
		err = turn.ErrNothing
	}
	return in, err
}

// see records what the client has. It returns the last message of the conversation, or nil if there is none. A result at the end
// of the conversation comes from the client.
func (in *Input) see() (last *message, err error) {
	in.Seen = turn.Seen{}
	for i, text := range in.Messages {
		m := &message{}
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		switch m.Role {
		case "assistant":
			in.Replies = append(in.Replies, m.ID)
			fallthrough
		case "reasoning":
			in.Seen.Add(m.ID)
			for _, c := range m.ToolCalls {
				in.Seen.Add(c.ID)
			}
		case "tool":
			in.Seen.Add(m.ID)
			in.Seen.AddResult(m.ToolCallID)
			text := ""
			if json.Unmarshal(m.Content, &text) != nil {
				text = string(m.Content)
			}
			in.Results = append(in.Results, turn.Answer{ID: m.ToolCallID, Response: text})
		case "user":
			if m.ID == "" { // its position distinguishes the message from an equal one
				m.ID = fmt.Sprintf("%d-%x", i, sha256.Sum256(m.Content))
			}
		case "activity", "system", "developer":
			continue // the message belongs to the page or the program, not to the conversation
		}
		if m.Role != "tool" { // results that something follows are already known
			in.Results = nil
		}
		last = m
	}
	slices.Reverse(in.Replies)
	return last, nil
}

// answer parses a resume entry, whose payload is a text, an object with response, or an object with approved and reason.
func answer(status string, payload json.RawMessage) (a turn.Answer, err error) {
	switch status {
	case "cancelled":
		return turn.Answer{Cancel: true}, nil
	case "resolved":
	default:
		return a, fmt.Errorf("the status %.40q: want resolved or cancelled", status)
	}
	var object struct {
		Response *string `json:"response"`
		Approved *bool   `json:"approved"`
		Reason   string  `json:"reason"`
	}
	if json.Unmarshal(payload, &a.Response) == nil && len(payload) > 0 {
		return a, nil
	}
	if json.Unmarshal(payload, &object) == nil {
		switch {
		case object.Approved != nil:
			return turn.Answer{Approved: object.Approved, Response: object.Reason}, nil
		case object.Response != nil:
			return turn.Answer{Response: *object.Response}, nil
		}
	}
	return a, fmt.Errorf("the payload: want a string, {\"response\": \"…\"} or {\"approved\": true}")
}

// content reads the content of a user message.
func content(raw json.RawMessage) (parts []llm.Part, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []llm.Part{{Text: text}}, nil
	}
	type source struct {
		Type     string `json:"type"`
		Value    string `json:"value"`
		MimeType string `json:"mimeType"`
	}
	var list []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Source   source `json:"source"`
		MimeType string `json:"mimeType"` // used with data or url, for the older type binary
		Data     string `json:"data"`
		URL      string `json:"url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("the content of the last message is neither a text nor a list of parts: %w", err)
	}
	for _, p := range list {
		if p.Type == "binary" {
			if p.Source = (source{"data", p.Data, p.MimeType}); p.URL != "" {
				p.Source = source{"url", p.URL, p.MimeType}
			}
		}
		url := p.Source.Value
		switch {
		case p.Type == "text":
			if p.Text != "" {
				parts = append(parts, llm.Part{Text: p.Text})
			}
			continue
		case p.Source.Type == "data":
			url = "data:" + p.Source.MimeType + ";base64," + url
		case p.Source.Type != "url":
			return nil, fmt.Errorf("a part of the type %.40q has a source of the type %.40q: want data or url", p.Type, p.Source.Type)
		}
		media, err := llm.MediaURL(url, p.Source.MimeType, "")
		if err != nil {
			return nil, fmt.Errorf("a part of the type %.40q: %w", p.Type, err)
		}
		parts = append(parts, llm.Part{Media: media})
	}
	return parts, nil
}
