package openai

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// outputItem contains the fields of a response item that are used.
type outputItem struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Status    string     `json:"status"`
	Content   []itemPart `json:"content"`
	Summary   []itemPart `json:"summary"`
	Encrypted string     `json:"encrypted_content"`
	CallID    string     `json:"call_id"`
	Name      string     `json:"name"`
	Arguments string     `json:"arguments"`
}

// itemPart is a part of a message, of reasoning or of a reasoning summary.
type itemPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`

	Annotations []json.RawMessage `json:"annotations"`
}

func (in *outputItem) text() string {
	return joined(in.Content, func(p itemPart) string { return p.Text })
}
func (in *outputItem) refusal() string {
	return joined(in.Content, func(p itemPart) string { return p.Refusal })
}
func (in *outputItem) summary() string {
	return joined(in.Summary, func(p itemPart) string { return p.Text })
}

func joined(parts []itemPart, text func(itemPart) string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(text(p))
	}
	return b.String()
}

// itemFields returns the fields of an item in JSON.
func itemFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	return fields, jsonv2.UnmarshalLenient(raw, &fields)
}

// readItem reads the fields that belong to the item's type. Items of the server's own tools have fields with the same names but
// other content.
func readItem(fields map[string]json.RawMessage) outputItem {
	var in outputItem
	read := func(key string, to any) {
		if raw := fields[key]; raw != nil {
			_ = jsonv2.UnmarshalLenient(raw, to) // a field of another type stays empty
		}
	}
	read("type", &in.Type)
	read("id", &in.ID)
	read("status", &in.Status)
	switch in.Type {
	case "message":
		read("content", &in.Content)
	case "reasoning":
		read("content", &in.Content)
		read("summary", &in.Summary)
		read("encrypted_content", &in.Encrypted)
	case "function_call":
		read("call_id", &in.CallID)
		read("name", &in.Name)
		read("arguments", &in.Arguments)
	}
	return in
}

// sentFields lists the fields of an item that are sent again, by type. Items of other types are sent as they were received. The
// server rejects the status and content of reasoning.
var sentFields = map[string][]string{
	"message":       {"type", "id", "role", "status", "content", "phase"},
	"reasoning":     {"type", "id", "summary", "encrypted_content"},
	"function_call": {"type", "id", "call_id", "name", "arguments"},
}

// keepItem removes the fields of an item that are not sent again.
func keepItem(kind string, fields map[string]json.RawMessage) {
	if sent, ok := sentFields[kind]; ok {
		maps.DeleteFunc(fields, func(key string, value json.RawMessage) bool {
			return !slices.Contains(sent, key) || string(value) == "null"
		})
	}
}

// maxItems is the maximum number of items in a response.
const maxItems = 10_000

// item is the part of an output item that has been received so far.
type item struct {
	index    int
	kind, id string
	call     int    // the number of the tool call; -1 for other items
	callID   string // the ID of a tool call
	name     string
	said     [llm.ToolInput + 1][]byte // the text of each kind
	summary  bool                      // whether the reasoning comes from the summary
	whole    bool                      // whether the model has finished the item
	fields   map[string]json.RawMessage
}

// at returns the item with this index, creating it if necessary.
func (d *responsesDecoder) at(index int) *item {
	if it := d.find(func(it *item) bool { return it.index == index }); it != nil {
		return it
	}
	it := &item{index: index, call: -1}
	d.items = append(d.items, it)
	return it
}

// find returns the last item for which fits returns true, or nil.
func (d *responsesDecoder) find(fits func(*item) bool) *item {
	for _, it := range slices.Backward(d.items) {
		if fits(it) {
			return it
		}
	}
	return nil
}

// item handles the start or the end of an item.
func (d *responsesDecoder) item(out []llm.Delta, index int, raw json.RawMessage, ended bool) ([]llm.Delta, error) {
	fields, err := itemFields(raw)
	if err != nil {
		return out, d.protocol("an item that is not an object: %v", err)
	}
	it, in := d.at(index), readItem(fields)
	out = d.begin(out, it, &in)
	if ended {
		out = d.finish(out, it, &in, fields)
	}
	return out, nil
}

// outcome handles an item of the response at its end. Most items have been received before, but some servers send only these, or
// number them differently.
func (d *responsesDecoder) outcome(out []llm.Delta, index int, raw json.RawMessage) ([]llm.Delta, error) {
	fields, err := itemFields(raw)
	if err != nil {
		return out, d.protocol("an item that is not an object: %v", err)
	}
	in := readItem(fields)
	it := d.find(func(it *item) bool { return in.ID != "" && it.id == in.ID })
	if it == nil {
		it = d.at(index)
	}
	if it.fields != nil || it.kind != "" && it.kind != in.Type {
		return out, nil
	}
	return d.finish(d.begin(out, it, &in), it, &in, fields), nil
}

// begin handles the fields that an item has from its start.
func (d *responsesDecoder) begin(out []llm.Delta, it *item, in *outputItem) []llm.Delta {
	it.kind, it.id, it.name = cmp.Or(it.kind, in.Type), cmp.Or(it.id, in.ID), cmp.Or(it.name, in.Name)
	if in.Type != "function_call" || it.call >= 0 {
		return out
	}
	it.call = d.calls
	d.calls++
	if it.callID = cmp.Or(in.CallID, in.ID); it.callID == "" {
		it.callID = d.ids.Next() // the result must name the call to which it belongs
	}
	return append(out, llm.Delta{Kind: llm.ToolCallStart, Index: it.call, Call: &llm.ToolCall{ID: it.callID, Name: it.name}})
}

// finish handles a complete item. It emits the text that has not arrived in an event.
func (d *responsesDecoder) finish(out []llm.Delta, it *item, in *outputItem, fields map[string]json.RawMessage) []llm.Delta {
	it.whole = in.Status == "" || in.Status == "completed"
	if in.Type == "function_call" {
		if !json.Valid([]byte(in.Arguments)) {
			fields["arguments"] = json.RawMessage(`"{}"`) // the arguments were cut off, and servers parse them again
		}
		if in.CallID == "" {
			fields["call_id"] = wire.JSON(it.callID)
		}
	}
	keepItem(in.Type, fields)
	it.fields = fields
	rest := func(kind llm.Kind, text string) {
		if more, ok := strings.CutPrefix(text, string(it.said[kind])); ok {
			out = d.grow(out, it, kind, more)
		}
	}
	switch in.Type {
	case "message":
		rest(llm.Text, in.text())
		rest(llm.Refusal, in.refusal())
	case "reasoning":
		if it.summary || in.text() == "" {
			rest(llm.Reasoning, in.summary())
		} else {
			rest(llm.Reasoning, in.text())
		}
	case "function_call":
		rest(llm.ToolInput, in.Arguments)
	}
	return out
}

// thought handles a piece of reasoning or of a reasoning summary. If an item has both, the kind that arrives first counts.
func (d *responsesDecoder) thought(out []llm.Delta, it *item, summary bool, text string) []llm.Delta {
	if len(it.said[llm.Reasoning]) == 0 {
		it.summary = summary
	}
	if it.summary != summary {
		return out
	}
	return d.grow(out, it, llm.Reasoning, text)
}

// grow adds text to an item.
func (d *responsesDecoder) grow(out []llm.Delta, it *item, kind llm.Kind, text string) []llm.Delta {
	if text == "" || kind == llm.ToolInput && it.call < 0 {
		return out
	}
	it.said[kind] = append(it.said[kind], text...)
	if kind == llm.ToolInput {
		return append(out, llm.Delta{Kind: kind, Index: it.call, Text: text})
	}
	d.said[kind].WriteString(text)
	return append(out, llm.Delta{Kind: kind, Text: text})
}
