package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// contentKey is the key under which Message.Metadata contains the parts of an answer.
const contentKey = "gemini/content"

// part holds the fields of a part that are read.
type part struct {
	Text      *string       `json:"text"`
	Thought   bool          `json:"thought"`
	Signature string        `json:"thoughtSignature"`
	Call      *functionCall `json:"functionCall"`
	Inline    *inlineData   `json:"inlineData"`
	StandIn   bool          `json:"stone/media"` // see standIn
}

type functionCall struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args"`
	WillContinue bool            `json:"willContinue"`
}

// keptPart is a received part.
type keptPart struct {
	part
	id   string // the ID of the tool call
	raw  json.RawMessage
	text []byte // unsigned text, which arrives in pieces
}

// add handles a part of the answer.
func (d *decoder) add(out []llm.Delta, raw json.RawMessage) ([]llm.Delta, error) {
	k := keptPart{raw: raw}
	if err := jsonv2.UnmarshalLenient(raw, &k.part); err != nil {
		return out, d.protocol("a part that is none: %v", err)
	}
	switch {
	case k.Call != nil:
		return d.call(out, k)
	case k.Inline != nil && !k.Thought:
		return out, d.media(k)
	case k.Text == nil:
		d.parts = append(d.parts, k) // part of a provider's tool, or a picture in a thought
		return out, nil
	}
	out = d.said(out, *k.Text, k.Thought)
	if k.Signature != "" {
		d.parts = append(d.parts, k) // a signature belongs to its part, which may be empty
		return out, nil
	}
	if n := len(d.parts); n > 0 && d.parts[n-1].text != nil && d.parts[n-1].Thought == k.Thought {
		d.parts[n-1].text = append(d.parts[n-1].text, *k.Text...)
	} else if *k.Text != "" {
		k.text = []byte(*k.Text)
		d.parts = append(d.parts, k)
	}
	return out, nil
}

// said adds text to the reply.
func (d *decoder) said(out []llm.Delta, text string, thought bool) []llm.Delta {
	switch {
	case text == "":
		return out
	case thought:
		d.reasoning.WriteString(text)
		return append(out, llm.Delta{Kind: llm.Reasoning, Text: text})
	}
	d.text.WriteString(text)
	return append(out, llm.Delta{Kind: llm.Text, Text: text})
}

// call handles a tool call, whose arguments arrive in one piece. Some servers send them as a string.
func (d *decoder) call(out []llm.Delta, k keptPart) ([]llm.Delta, error) {
	if k.Call.WillContinue {
		return out, d.protocol("arguments of a tool call in pieces: remove streamFunctionCallArguments from Extra")
	}
	n := len(d.reply.ToolCalls)
	if k.id = k.Call.ID; k.id == "" {
		k.id = d.ids.Next()
	}
	d.parts = append(d.parts, k)
	args := string(k.Call.Args)
	var text string
	if json.Unmarshal(k.Call.Args, &text) == nil {
		args = text // null is ""
	}
	call := wire.ToolCall(k.id, k.Call.Name, []byte(args), true)
	d.reply.ToolCalls = append(d.reply.ToolCalls, call)
	out = append(out, llm.Delta{Kind: llm.ToolCallStart, Index: n, Call: &llm.ToolCall{ID: call.ID, Name: call.Name}})
	if args != "" {
		out = append(out, llm.Delta{Kind: llm.ToolInput, Index: n, Text: args})
	}
	return out, nil
}

// keep returns the parts for the next turn, or nil if all parts are text without a signature.
func (d *decoder) keep() (map[string]json.RawMessage, error) {
	if !slices.ContainsFunc(d.parts, func(k keptPart) bool { return k.text == nil }) {
		return nil, nil
	}
	parts := make([]any, len(d.parts))
	for i, k := range d.parts {
		switch {
		case k.text == nil:
			parts[i] = k.raw
		case k.Thought:
			parts[i] = object{"text": string(k.text), "thought": true}
		default:
			parts[i] = object{"text": string(k.text)}
		}
	}
	raw, err := json.Marshal(parts)
	if err != nil {
		return nil, d.protocol("parts that are not JSON: %v", err)
	}
	return map[string]json.RawMessage{contentKey: raw}, nil
}

// received returns the kept parts of a message, or nil.
func received(m llm.Message) []keptPart {
	var raws []json.RawMessage
	if json.Unmarshal(m.Metadata[contentKey], &raws) != nil {
		return nil
	}
	parts := make([]keptPart, len(raws))
	calls := 0
	for i, raw := range raws {
		if jsonv2.UnmarshalLenient(raw, &parts[i].part) != nil {
			return nil
		}
		parts[i].raw = raw
		if call := parts[i].Call; call != nil {
			if parts[i].id = call.ID; call.ID == "" && calls < len(m.ToolCalls) {
				parts[i].id = m.ToolCalls[calls].ID // the server did not send an ID, so one was made up
			}
			calls++
		}
	}
	return parts
}

// unchanged reports whether a message still has the text and the tool calls of these parts.
func unchanged(m llm.Message, parts []keptPart) bool {
	var text strings.Builder
	var calls []string
	media := 0
	for _, p := range parts {
		switch {
		case p.StandIn:
			media++
		case p.Call != nil:
			calls = append(calls, p.id)
		case p.Text != nil && !p.Thought:
			text.WriteString(*p.Text)
		}
	}
	return text.String() == m.Text() && media == len(m.Media()) &&
		slices.EqualFunc(calls, m.ToolCalls, func(id string, c llm.ToolCall) bool { return id == c.ID })
}
