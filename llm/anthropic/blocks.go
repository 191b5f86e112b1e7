package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// block is the part of a content block that has been received so far.
type block struct {
	index  int
	kind   string
	fields map[string]json.RawMessage // the fields at its start
	call   int                        // the number of the client's tool call
	ended  bool

	text      []byte // the text so far, for text, thinking and other kinds that grow
	input     []byte
	signature string
	citations []json.RawMessage
}

// grows maps kinds of blocks that grow to the field that contains their text.
var grows = map[string]string{"text": "text", "thinking": "thinking", "compaction": "content"}

// blockDelta contains all fields that are read from deltas of any kind.
type blockDelta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	PartialJSON string          `json:"partial_json"`
	Signature   string          `json:"signature"`
	Citation    json.RawMessage `json:"citation"`
	Content     json.RawMessage `json:"content"` // the content of a compaction
}

// wants maps a kind of delta to the only kind of block that it may extend.
var wants = map[string]string{"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}

func (d *decoder) block(index int) *block {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].index == index {
			return d.blocks[i]
		}
	}
	return nil
}

// beginBlock handles the start of a block, which may already be complete.
func (d *decoder) beginBlock(out []llm.Delta, index int, raw json.RawMessage) ([]llm.Delta, error) {
	if d.block(index) != nil {
		return out, d.protocol("block %d begins twice", index)
	}
	b := &block{index: index, call: -1}
	var head struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		ID        string `json:"id"`
		Name      string `json:"name"`
	}
	if err := jsonv2.UnmarshalLenient(raw, &b.fields); err != nil {
		return out, err
	}
	if err := jsonv2.UnmarshalLenient(raw, &head); err != nil {
		return out, err
	}
	b.kind, b.signature = head.Type, head.Signature
	d.blocks = append(d.blocks, b)
	switch b.kind {
	case "text":
		return d.grow(out, b, llm.Text, head.Text), nil
	case "thinking":
		return d.grow(out, b, llm.Reasoning, head.Thinking), nil
	case "tool_use":
		b.call = d.calls
		d.calls++
		if head.ID == "" {
			head.ID = d.ids.Next() // the result must name the call to which it belongs
			b.fields["id"] = wire.JSON(head.ID)
		}
		out = append(out, llm.Delta{Kind: llm.ToolCallStart, Index: b.call, Call: &llm.ToolCall{ID: head.ID, Name: head.Name}})
	}
	return out, nil
}

// blockDelta handles a delta of a block.
func (d *decoder) blockDelta(out []llm.Delta, e *event) ([]llm.Delta, error) {
	b := d.block(e.Index)
	if b == nil {
		return out, d.protocol("a delta for block %d, which has not started", e.Index)
	}
	in := e.piece
	if in == nil {
		in = new(blockDelta)
		if err := jsonv2.UnmarshalLenient(e.Delta, in); err != nil {
			return out, err
		}
	}
	if kind, ok := wants[in.Type]; ok && kind != b.kind {
		return out, d.protocol("%s for block %d of type %s", in.Type, e.Index, b.kind)
	}
	switch in.Type {
	case "text_delta":
		out = d.grow(out, b, llm.Text, in.Text)
	case "thinking_delta":
		out = d.grow(out, b, llm.Reasoning, in.Thinking)
	case "signature_delta":
		b.signature = in.Signature
	case "citations_delta":
		b.citations = append(b.citations, in.Citation)
	case "input_json_delta":
		b.input = append(b.input, in.PartialJSON...)
		if b.call >= 0 && in.PartialJSON != "" {
			out = append(out, llm.Delta{Kind: llm.ToolInput, Index: b.call, Text: in.PartialJSON})
		}
	case "compaction_delta":
		var text string
		if jsonv2.UnmarshalLenient(in.Content, &text) == nil {
			b.text = append(b.text, text...)
		} else if len(in.Content) > 0 {
			b.fields["content"] = in.Content
		}
	}
	return out, nil
}

// grow appends text to a block.
func (d *decoder) grow(out []llm.Delta, b *block, kind llm.Kind, text string) []llm.Delta {
	if text == "" {
		return out
	}
	b.text = append(b.text, text...)
	if kind == llm.Text {
		d.text.WriteString(text)
	} else {
		d.reasoning.WriteString(text)
	}
	return append(out, llm.Delta{Kind: kind, Text: text})
}

// finishBlocks converts tool_use blocks to tool calls. It keeps all blocks for the next turn if any block has citations or is
// neither text nor a call.
func (d *decoder) finishBlocks() {
	r := &d.reply
	special := false
	ending := rules.EndingOf(r.StopReason)
	whole := ending == rules.Whole || ending == rules.Paused
	for i, b := range d.blocks {
		switch b.kind {
		case "text":
			special = special || len(b.citations) > 0
			r.Sources = append(r.Sources, b.sources()...)
		case "tool_use":
			r.ToolCalls = append(r.ToolCalls, b.toolCall(b.ended && (whole || i < len(d.blocks)-1)))
		default:
			special = true
		}
	}
	if !special {
		return
	}
	kept := make([]map[string]json.RawMessage, 0, len(d.blocks))
	for _, b := range d.blocks {
		if b.kind == "text" && len(b.text) == 0 {
			continue // the provider sends such blocks but rejects them in requests
		}
		kept = append(kept, b.whole())
	}
	r.Metadata = map[string]json.RawMessage{contentKey: wire.JSON(kept)}
}

// sources returns the citations in a text block.
func (b *block) sources() (out []llm.Source) {
	list := b.citations
	if len(list) == 0 {
		_ = jsonv2.UnmarshalLenient(b.fields["citations"], &list) // present in an answer that is not a stream
	}
	for _, raw := range list {
		var c struct {
			URL      string `json:"url"`
			Source   string `json:"source"` // present in a result that the client supplied
			Title    string `json:"title"`
			Document string `json:"document_title"`
			File     string `json:"file_id"`
			Quote    string `json:"cited_text"`
		}
		if jsonv2.UnmarshalLenient(raw, &c) == nil && cmp.Or(c.URL, c.Source, c.Title, c.Document, c.File, c.Quote) != "" {
			out = append(out, llm.Source{URL: cmp.Or(c.URL, c.Source), Title: cmp.Or(c.Title, c.Document), File: c.File, Quote: c.Quote, Claim: string(b.text)})
		}
	}
	return out
}

func (b *block) toolCall(ended bool) llm.ToolCall {
	var id, name string
	// The ID is a string, because beginBlock has rejected anything else.
	_ = jsonv2.UnmarshalLenient(b.fields["id"], &id)
	_ = jsonv2.UnmarshalLenient(b.fields["name"], &name)
	return wire.ToolCall(id, name, b.arguments(), ended)
}

// arguments returns the input that was received in deltas, or else the initial input of the block. An initial empty object is
// only a placeholder.
func (b *block) arguments() []byte {
	start := b.fields["input"]
	if len(b.input) > 0 || string(start) == "{}" || string(start) == "null" {
		return b.input
	}
	return start
}

// whole returns the block in the form of an answer without streaming.
func (b *block) whole() map[string]json.RawMessage {
	if field, ok := grows[b.kind]; ok && len(b.text) > 0 {
		b.fields[field] = wire.JSON(string(b.text))
	}
	if b.signature != "" {
		b.fields["signature"] = wire.JSON(b.signature)
	}
	if len(b.citations) > 0 {
		b.fields["citations"] = wire.JSON(b.citations)
	}
	if _, ok := b.fields["input"]; ok {
		input := wire.ToolCall("", "", b.arguments(), true).Input
		if input == nil {
			input = json.RawMessage("{}") // the input was cut off, but the protocol requires an object
		}
		b.fields["input"] = input
	}
	return b.fields
}

// media returns an error for media that the Messages protocol does not support in user messages and tool results. Source:
// Anthropic, API reference, "Create a Message", image and document blocks.
func media(role llm.Role, m *llm.Media) error {
	switch {
	case role == llm.RoleAssistant:
		return wire.Misplaced(role, m)
	case wire.OneOf(m.Type, "image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf") || m.Type == llm.AnyImage:
		return nil
	case strings.HasPrefix(m.Type, "text/") && m.URL == "":
		return nil
	case strings.HasPrefix(m.Type, "text/"):
		return fmt.Errorf("media of type %q by URL: Messages takes only images and PDF by URL, set Data", m.Type)
	}
	return fmt.Errorf("media of type %q: Messages takes images (JPEG, PNG, GIF, WebP), PDF and text", m.Type)
}

func mediaBlock(m *llm.Media) object {
	if strings.HasPrefix(m.Type, "image/") {
		return object{"type": "image", "source": source(m)}
	}
	block := object{"type": "document", "source": source(m)}
	if m.Name != "" {
		block["title"] = m.Name
	}
	return block
}

func source(m *llm.Media) object {
	switch {
	case m.URL != "":
		return object{"type": "url", "url": m.URL}
	case strings.HasPrefix(m.Type, "text/"):
		return object{"type": "text", "media_type": "text/plain", "data": string(m.Data)}
	}
	return object{"type": "base64", "media_type": m.Type, "data": m.Data}
}
