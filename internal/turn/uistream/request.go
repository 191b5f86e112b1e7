package uistream

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/llm"
)

// message is a UIMessage.
type message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	URL        string          `json:"url"`
	MediaType  string          `json:"mediaType"`
	Filename   string          `json:"filename"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"` // of a call
	Executed   bool            `json:"providerExecuted"`
	Output     json.RawMessage `json:"output"`
	Error      string          `json:"errorText"`
	Approval   struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
	Data     json.RawMessage `json:"data"`
	Metadata struct {
		Stone struct {
			Part string `json:"part"`
		} `json:"stone"`
	} `json:"providerMetadata"`
}

// Read reads a request. Fields that a client adds are ignored.
func Read(body []byte) (req turn.Request, err error) {
	var in struct {
		ID        string    `json:"id"`
		Messages  []message `json:"messages"`
		Trigger   string    `json:"trigger"`
		MessageID string    `json:"messageId"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return req, fmt.Errorf("the body is no request of the AI SDK: %w", err)
	}
	switch in.Trigger {
	case "", "submit-message":
	case "regenerate-message":
		req.Again = true
	default:
		return req, fmt.Errorf("the trigger %.40q: want submit-message or regenerate-message", in.Trigger)
	}
	req.Chat = in.ID
	if len(in.Messages) == 0 {
		return req, turn.ErrNothing
	}
	for i := len(in.Messages) - 1; i >= 0; i-- {
		if m := in.Messages[i]; m.Role == "assistant" {
			req.Replies = append(req.Replies, m.ID)
		}
	}
	req.Seen = turn.Seen{}
	for _, m := range in.Messages {
		for _, p := range m.Parts {
			if id := p.Metadata.Stone.Part; id != "" {
				req.Seen.Add(id)
			} else if p.ToolCallID != "" {
				req.Seen.Add(p.ToolCallID)
				if strings.HasPrefix(p.State, "output-") {
					req.Seen.AddResult(p.ToolCallID)
				}
			}
		}
	}
	last := in.Messages[len(in.Messages)-1]
	switch last.Role {
	case "assistant":
		req.Reply = last.ID
		for _, p := range last.Parts {
			if p.Approval.ID != "" && p.Approval.Approved != nil {
				req.Answers = append(req.Answers, turn.Answer{ID: p.Approval.ID, Response: p.Approval.Reason, Approved: p.Approval.Approved})
			}
			if p.ToolCallID != "" && !p.Executed && strings.HasPrefix(p.State, "output-") {
				req.Results = append(req.Results, turn.Answer{ID: p.ToolCallID, Response: p.result()})
			}
		}
		if len(req.Answers)+len(req.Results) == 0 {
			return req, turn.ErrNothing
		}
	case "user":
		req.Message, req.Edited = last.ID, in.MessageID != ""
		return req, content(&req, last)
	default:
		return req, fmt.Errorf("the last message has the role %.40q: want user, or assistant with an approval", last.Role)
	}
	return req, nil
}

// result is the result of a call that the client has executed.
func (p part) result() string {
	text := ""
	switch {
	case p.State == "output-error":
		return "The tool failed: " + p.Error
	case json.Unmarshal(p.Output, &text) == nil:
		return text
	}
	return string(p.Output)
}

// content reads the message of a user.
func content(req *turn.Request, m message) error {
	if m.Parts == nil {
		return fmt.Errorf("the last message has no parts: want {\"parts\": [{\"type\": \"text\", \"text\": \"…\"}]}")
	}
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			if p.Text != "" {
				req.Content = append(req.Content, llm.Part{Text: p.Text})
			}
		case "file":
			media, err := llm.MediaURL(p.URL, p.MediaType, p.Filename)
			if err != nil {
				return fmt.Errorf("a part of the type file: %w", err)
			}
			req.Content = append(req.Content, llm.Part{Media: media})
		case "data-answer":
			var a struct {
				Question, Response string
				Cancel             bool
			}
			if err := json.Unmarshal(p.Data, &a); err != nil || a.Question == "" {
				return fmt.Errorf("a part data-answer: want {\"question\": \"the id of a data-question\", \"response\": \"…\"}")
			}
			req.Answers = append(req.Answers, turn.Answer{ID: a.Question, Response: a.Response, Cancel: a.Cancel})
		default:
			if strings.HasPrefix(p.Type, "data-") || strings.HasPrefix(p.Type, "source-") {
				continue // of the page alone, as in the AI SDK
			}
			return fmt.Errorf("a message of the user has a part of the type %.40q: want text, file or data-answer", p.Type)
		}
	}
	if len(req.Content) == 0 && len(req.Answers) == 0 {
		return turn.ErrNothing
	}
	return nil
}
