package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// chunk contains the fields of an event that are read. Fields whose type differs between servers are decoded later.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices choices         `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Groq    *struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"x_groq"`
	Timings json.RawMessage `json:"timings"` // sent by llama.cpp

	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"` // the message of an error without an enclosing object
	Detail  json.RawMessage `json:"detail"`
	Object  string          `json:"object"`
}

// choices are parts of one answer, since requests ask for only one: some servers put the text in one choice and the calls in
// another. Choices are read one by one, and only the first few are kept, because a server can send millions of them in one
// document.
type choices []choice

// UnmarshalJSONFrom keeps the first maxChoices choices.
func (c *choices) UnmarshalJSONFrom(in *jsonv2.Decoder) error {
	*c = nil
	if in.PeekKind() != '[' {
		return jsonv2.DecodeLenient(in, (*[]choice)(c))
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for in.PeekKind() != ']' {
		if len(*c) == maxChoices {
			if err := in.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var one choice
		if err := jsonv2.DecodeLenient(in, &one); err != nil {
			return err
		}
		*c = append(*c, one)
	}
	_, err := in.ReadToken()
	return err
}

// maxChoices is the maximum number of choices kept from an event. Requests ask for only one.
const maxChoices = 8

type choice struct {
	Delta        delta  `json:"delta"`
	Message      *delta `json:"message"` // present in an answer that is not a stream
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	text             string          // the content if it is a string; Content is then empty
	Content          json.RawMessage `json:"content"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	Refusal          string          `json:"refusal"`
	ToolCalls        []callDelta     `json:"tool_calls"`

	Annotations []json.RawMessage `json:"annotations"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// chatDecoder reads one answer.
type chatDecoder struct {
	config    *Config
	reply     llm.Reply
	text      strings.Builder
	reasoning strings.Builder
	refusal   strings.Builder
	think     thinkReader
	calls     []*call
	ids       wire.MadeIDs
	details   []map[string]any
	thought   bool // whether the reasoning arrived as reasoning_content
	cited     []json.RawMessage
	vendor    llm.Usage // the usage from the vendor's own field
	finished  bool      // whether the server has sent a finish reason or [DONE]

	scanner jsonv2.Scanner
	scanned chunk // the last event that the scanner read
}

func newChatDecoder(c *Config, requestID string) *chatDecoder {
	d := &chatDecoder{config: c, reply: llm.Reply{RequestID: requestID}}
	d.think.init(c.ThinkTags)
	return d
}

var doneMark = []byte("[DONE]")

// Event handles one event.
func (d *chatDecoder) Event(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error) {
	done, err := false, error(nil)
	if bytes.IndexByte(data, '\n') >= 0 && !json.Valid(data) {
		// Some servers omit the blank lines between events.
		for line := range bytes.Lines(data) {
			if out, done, err = d.full(out, name, line); done || err != nil {
				break
			}
		}
		return out, done, err
	}
	return d.full(out, name, data)
}

// full reads any event.
func (d *chatDecoder) full(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error) {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, doneMark) {
		d.finished = true
		return out, true, nil
	}
	if len(data) == 0 {
		return out, false, nil
	}
	if wire.Ping(data) && name != "error" {
		return out, false, nil // a ping, or null
	}
	c, err := d.read(data)
	if err != nil {
		if name == "error" {
			return out, false, failure(data, d.reply.RequestID)
		}
		if !spoken(name) {
			return out, false, nil
		}
		return out, false, d.protocol("an event that is not a chunk: " + err.Error())
	}
	if out, err = d.chunk(out, c); !spoken(name) {
		return out, false, err
	}
	if failure := d.chunkError(name, data, c); failure != nil {
		err = failure
	}
	return out, false, err
}

// spoken reports whether the protocol has an event with the name; servers may send their own events.
func spoken(name string) bool {
	return name == "" || name == "error" || name == "message" || name == "data"
}

// Whole handles an answer that is not a stream.
func (d *chatDecoder) Whole(out []llm.Delta, data []byte) ([]llm.Delta, error) {
	var c chunk
	if err := jsonv2.UnmarshalLenient(data, &c); err != nil {
		return out, d.protocol("a document that is not an answer: " + err.Error())
	}
	out, err := d.chunk(out, &c)
	if failure := d.chunkError("", data, &c); failure != nil {
		err = failure
	}
	d.finished = d.finished || len(c.Choices) > 0
	return out, err
}

// End ends the answer.
func (d *chatDecoder) End(out []llm.Delta) ([]llm.Delta, error) {
	for _, p := range d.think.end() {
		out = d.emit(out, p.kind, p.text)
	}
	r := &d.reply
	r.Text, r.Reasoning, r.Refusal = d.text.String(), d.reasoning.String(), d.refusal.String()
	whole := rules.EndingOf(r.StopReason) == rules.Whole
	for i, c := range d.calls {
		// If the last call has no arguments, it may have been cut off before they started.
		ended := d.finished && (whole || i < len(d.calls)-1)
		r.ToolCalls = append(r.ToolCalls, wire.ToolCall(c.id, c.name, c.args, ended))
	}
	if r.Usage.Raw == nil {
		r.Usage = d.vendor
	}
	r.Sources = sources(d.cited, r.Text)
	d.keepMetadata()
	if !d.finished {
		return out, &llm.TruncatedError{RequestID: r.RequestID}
	}
	return out, nil
}

// Reply returns the reply received so far.
func (d *chatDecoder) Reply() *llm.Reply { return &d.reply }

func (d *chatDecoder) chunk(out []llm.Delta, c *chunk) ([]llm.Delta, error) {
	if d.reply.ID == "" {
		d.reply.ID = c.ID
	}
	if d.reply.Model == "" {
		d.reply.Model = c.Model
	}
	if u, ok := usage(c.Usage); ok {
		d.reply.Usage = wire.Larger(d.reply.Usage, u)
	}
	d.vendorUsage(c)
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Message != nil {
			ch.Delta = *ch.Message
		}
		var err error
		if out, err = d.delta(out, &ch.Delta, ch.Message != nil); err != nil {
			return out, err
		}
		if ch.FinishReason != "" {
			d.reply.StopReason = ch.FinishReason
			d.finished = true
		}
	}
	return out, nil
}

func (d *chatDecoder) delta(out []llm.Delta, in *delta, whole bool) ([]llm.Delta, error) {
	out = d.emit(out, llm.Reasoning, d.reasoningText(in))
	if in.text != "" {
		out = d.content(out, piece{llm.Text, in.text})
	}
	pieces, ok := parts(in.Content)
	if !ok {
		return out, d.protocol("content that is neither a string nor a list of parts: " + string(in.Content))
	}
	for _, p := range pieces {
		out = d.content(out, p)
	}
	out = d.emit(out, llm.Refusal, in.Refusal)
	for _, raw := range in.Annotations {
		d.cited = append(d.cited, bytes.Clone(raw))
	}
	for i := range in.ToolCalls {
		out = d.toolCall(out, &in.ToolCalls[i], whole)
	}
	return out, nil
}

// content handles a piece of the content, which may contain thinking between tags.
func (d *chatDecoder) content(out []llm.Delta, p piece) []llm.Delta {
	if p.kind != llm.Text || d.think.past {
		return d.emit(out, p.kind, p.text)
	}
	for _, p := range d.think.add(p.text) {
		out = d.emit(out, p.kind, p.text)
	}
	return out
}

func (d *chatDecoder) emit(out []llm.Delta, kind llm.Kind, text string) []llm.Delta {
	if text == "" {
		return out
	}
	switch kind {
	case llm.Text:
		d.text.WriteString(text)
	case llm.Reasoning:
		d.reasoning.WriteString(text)
	case llm.Refusal:
		d.refusal.WriteString(text)
	}
	return append(out, llm.Delta{Kind: kind, Text: text})
}

func (d *chatDecoder) protocol(reason string) error {
	return &llm.ProtocolError{Reason: reason, RequestID: d.reply.RequestID}
}

// piece is a piece of text and its channel.
type piece struct {
	kind llm.Kind
	text string
}

// parts reads content, which is null, a string, or a list of typed parts.
func parts(raw json.RawMessage) (pieces []piece, ok bool) {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, true
	}
	if s, ok := str(raw); ok {
		return []piece{{llm.Text, s}}, true
	}
	var list []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if jsonv2.UnmarshalLenient(raw, &list) != nil {
		return nil, false
	}
	for _, p := range list {
		switch p.Type {
		case "text", "output_text", "":
			pieces = append(pieces, piece{llm.Text, p.Text})
		case "thinking":
			thoughts, ok := parts(p.Thinking)
			if !ok {
				return nil, false
			}
			for _, t := range thoughts {
				pieces = append(pieces, piece{llm.Reasoning, t.text})
			}
		}
	}
	return pieces, true
}
