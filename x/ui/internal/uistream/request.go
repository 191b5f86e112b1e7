package uistream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/llm"
)

// A message is a UIMessage that a client has sent.
type message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	ID         string          `json:"id"` // id of a data part
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	URL        string          `json:"url"`
	MediaType  string          `json:"mediaType"`
	Filename   string          `json:"filename"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"` // state of a call
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

// Read parses a request. Additional fields are ignored.
func Read(body []byte) (req turn.Request, err error) {
	var in struct {
		ID        string    `json:"id"`
		Messages  []message `json:"messages"`
		Message   *message  `json:"message"` // used instead of all messages by a client that sends only the last one
		Trigger   string    `json:"trigger"`
		MessageID string    `json:"messageId"`
		Tools     tools     `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return req, fmt.Errorf("the body is not a request of the AI SDK: %w", err)
	}
	switch in.Trigger {
	case "", "submit-message":
	case "regenerate-message":
		req.Again = true
	default:
		return req, fmt.Errorf("the trigger %.40q: want submit-message or regenerate-message", in.Trigger)
	}
	req.Chat, req.Tools = in.ID, in.Tools
	if len(in.Messages) == 0 && in.Message != nil {
		in.Messages = []message{*in.Message}
	}
	if len(in.Messages) == 0 {
		return req, turn.ErrNothing
	}
	for i := len(in.Messages) - 1; i >= 0; i-- {
		if m := in.Messages[i]; m.Role == "assistant" {
			req.Replies = append(req.Replies, m.ID)
		}
	}
	last := in.Messages[len(in.Messages)-1]
	req.Seen = turn.Seen{}
	for _, m := range in.Messages {
		m.seen(req.Seen, last.Role == "user")
	}
	switch last.Role {
	case "assistant":
		req.Reply = last.ID
		for _, p := range last.Parts {
			if p.Approval.ID != "" && p.Approval.Approved != nil && !p.settled() {
				req.Answers = append(req.Answers, turn.Answer{ID: p.Approval.ID, Response: p.Approval.Reason, Approved: p.Approval.Approved})
			}
			if p.ToolCallID != "" && !p.Executed && p.settled() {
				req.Results = append(req.Results, turn.Answer{ID: p.ToolCallID, Response: p.result()})
			}
		}
		if len(req.Answers)+len(req.Results) == 0 {
			return req, turn.ErrNothing
		}
	case "user":
		req.Message, req.Edited = last.ID, in.MessageID != "" && in.MessageID == last.ID
		return req, content(&req, last)
	default:
		return req, fmt.Errorf("the last message has the role %.40q: want user, or assistant with an approval", last.Role)
	}
	return req, nil
}

// seen records the parts of a message that the client has. A client changes only its last message, so the open parts of other
// messages are sent to it again.
func (m message) seen(by turn.Seen, over bool) {
	for _, p := range m.Parts {
		switch id := p.Metadata.Stone.Part; {
		case id != "":
			by.Add(id)
		case p.settled():
			by.Add(p.ToolCallID)
			by.AddResult(p.ToolCallID)
		case over:
		default:
			by.Add(p.ToolCallID)
			if !p.Executed {
				by.AddQuestion(p.ToolCallID)
			}
			by.AddQuestion(cmp.Or(p.Approval.ID, p.ID))
		}
	}
}

// settled reports whether a call has ended.
func (p part) settled() bool { return strings.HasPrefix(p.State, "output-") }

// tools holds the tools of a client. They are parsed from a list or, as assistant-ui sends them, from an object with one member
// for each tool.
type tools []llm.Tool

func (t *tools) UnmarshalJSON(text []byte) error {
	type offer struct {
		Name, Description string
		Parameters        json.RawMessage
	}
	var list []offer
	if err := json.Unmarshal(text, &list); err != nil {
		var by map[string]offer
		if err := json.Unmarshal(text, &by); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(by)) {
			list = append(list, offer{name, by[name].Description, by[name].Parameters})
		}
	}
	for _, o := range list {
		*t = append(*t, llm.Tool{Name: o.Name, Description: o.Description, Schema: o.Parameters})
	}
	return nil
}

// result returns the result of a call that the client has executed.
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

// content parses the message of a user.
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
				continue // the part is only for the page, as in the AI SDK
			}
			return fmt.Errorf("a message of the user has a part of the type %.40q: want text, file or data-answer", p.Type)
		}
	}
	if len(req.Content) == 0 && len(req.Answers) == 0 {
		return turn.ErrNothing
	}
	return nil
}
