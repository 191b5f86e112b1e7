package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// event contains the fields of an event that are read. Some fields have different types in different events.
type event struct {
	Type     string          `json:"type"`
	Index    json.RawMessage `json:"output_index"`
	Item     json.RawMessage `json:"item"`
	Delta    json.RawMessage `json:"delta"`
	Response json.RawMessage `json:"response"`
}

// response is a response, which may be incomplete.
type response struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Background bool              `json:"background"`
	Output     []json.RawMessage `json:"output"`
	Usage      json.RawMessage   `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// responsesDecoder reads one response.
type responsesDecoder struct {
	stateful   bool
	reply      llm.Reply
	said       [llm.Refusal + 1]strings.Builder
	items      []*item // the items, in the order in which they started
	calls      int
	ids        wire.MadeIDs
	finished   bool   // whether the server has sent the end of the response
	waiting    bool   // whether the server answered before the response ended
	background string // the ID of a response that the server continues in the background
}

// Event handles one event. The data contains the event's type, which the name repeats.
func (d *responsesDecoder) Event(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || bytes.Equal(data, doneMark) {
		return out, false, nil // not part of this protocol, but some servers add it
	}
	if wire.Ping(data) && name != "error" {
		return out, false, nil // a ping, or null
	}
	var e event
	if err := jsonv2.UnmarshalLenient(data, &e); err != nil {
		if name == "error" {
			return out, false, d.failure(data)
		}
		return out, false, d.protocol("an event that is not an object: %v", err)
	}
	if e.Type == "error" || name == "error" {
		return out, false, d.failure(data)
	}
	var err error
	switch e.Type {
	case "": // the whole response in one event, or an event of the server's own
		var r response
		if jsonv2.UnmarshalLenient(data, &r) == nil && r.Object == "response" {
			out, err = d.Whole(out, data)
		}
	case "response.created", "response.queued", "response.in_progress",
		"response.completed", "response.incomplete", "response.failed", "response.cancelled":
		out, err = d.response(out, e.Response, strings.TrimPrefix(e.Type, "response."))
	case "response.output_item.added", "response.output_item.done":
		out, err = d.item(out, e.index(), e.Item, e.Type == "response.output_item.done")
	case "response.output_text.delta":
		out = d.grow(out, d.at(e.index()), llm.Text, e.text())
	case "response.refusal.delta":
		out = d.grow(out, d.at(e.index()), llm.Refusal, e.text())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning.delta":
		out = d.thought(out, d.at(e.index()), e.Type == "response.reasoning_summary_text.delta", e.text())
	case "response.function_call_arguments.delta":
		out = d.grow(out, d.at(e.index()), llm.ToolInput, e.text())
	}
	if err == nil && len(d.items) > maxItems {
		err = d.tooMany()
	}
	return out, d.finished, err
}

// index returns the number of the item, or 0 if the server did not send one.
func (e *event) index() int {
	n, err := strconv.Atoi(string(e.Index))
	if err != nil {
		return 0
	}
	return n
}

func (e *event) text() string {
	s, _ := str(e.Delta)
	return s
}

// Whole handles a response that is not a stream, or the complete response after a stream was cut off.
func (d *responsesDecoder) Whole(out []llm.Delta, data []byte) ([]llm.Delta, error) {
	var r response
	if err := jsonv2.UnmarshalLenient(data, &r); err != nil {
		return out, d.protocol("a document that is not a response: %v", err)
	}
	if r.Object != "response" && wire.Says(r.Error) {
		return out, d.failure(data)
	}
	if r.Object != "response" && r.Output == nil {
		return out, d.protocol("a document of type %q that is not a response", r.Object)
	}
	out, err := d.response(out, data, r.Status)
	if d.waiting = err == nil && !d.finished && r.ID != ""; d.waiting {
		d.background = r.ID
	}
	return out, err
}

// Rest returns the ID of a background response that has not ended. It implements
// wire.Unfinished.
func (d *responsesDecoder) Rest() string {
	if d.finished {
		return ""
	}
	return url.PathEscape(d.background)
}

// End ends the response.
func (d *responsesDecoder) End(out []llm.Delta) ([]llm.Delta, error) {
	r := &d.reply
	r.Text, r.Reasoning, r.Refusal = d.said[llm.Text].String(), d.said[llm.Reasoning].String(), d.said[llm.Refusal].String()
	r.ToolCalls = nil
	whole := rules.EndingOf(r.StopReason) == rules.Whole
	for i, it := range d.items {
		if it.call >= 0 {
			r.ToolCalls = append(r.ToolCalls, wire.ToolCall(it.callID, it.name, it.said[llm.ToolInput], it.whole && (whole || i < len(d.items)-1)))
		}
	}
	switch {
	case d.finished:
		d.keepSources()
		d.keepMetadata()
	case !d.waiting:
		return out, &llm.TruncatedError{RequestID: r.RequestID}
	}
	return out, nil
}

// Reply returns the reply received so far.
func (d *responsesDecoder) Reply() *llm.Reply { return &d.reply }

// response handles a copy of the response in an event.
func (d *responsesDecoder) response(out []llm.Delta, raw json.RawMessage, status string) ([]llm.Delta, error) {
	var r response
	if err := jsonv2.UnmarshalLenient(raw, &r); err != nil {
		return out, d.protocol("a response that is not an object: %v", err)
	}
	d.reply.ID, d.reply.Model = cmp.Or(d.reply.ID, r.ID), cmp.Or(d.reply.Model, r.Model)
	if u, ok := responsesUsage(r.Usage); ok {
		d.reply.Usage = wire.Larger(d.reply.Usage, u)
	}
	if status == "created" || status == "queued" || status == "in_progress" {
		if r.Background {
			d.background = r.ID
		}
		return out, nil
	}
	var err error
	if len(r.Output) > maxItems {
		return out, d.tooMany()
	}
	for i, raw := range r.Output {
		if out, err = d.outcome(out, i, raw); err != nil {
			return out, err
		}
	}
	switch status {
	case "failed", "cancelled":
		d.background = ""
		failed := &llm.ProviderError{Message: "the response ended as " + status, Code: status, RequestID: d.reply.RequestID}
		if wire.Says(r.Error) {
			failed = d.failure(r.Error)
		}
		return out, failed
	case "incomplete":
		d.reply.StopReason = status
		if r.Incomplete != nil && r.Incomplete.Reason != "" {
			d.reply.StopReason = r.Incomplete.Reason
		}
	default:
		d.reply.StopReason = "completed"
	}
	d.finished = true
	return out, nil
}

// failure converts the provider's error. Sometimes only the event states the error's type.
func (d *responsesDecoder) failure(data []byte) *llm.ProviderError {
	e := failure(data, d.reply.RequestID)
	if e.Type == "error" {
		e.Type = ""
	}
	return e
}

func (d *responsesDecoder) tooMany() error {
	return d.protocol("a response of more than %d items", maxItems)
}

func (d *responsesDecoder) protocol(format string, args ...any) error {
	return &llm.ProtocolError{Reason: fmt.Sprintf(format, args...), RequestID: d.reply.RequestID}
}

// keepMetadata stores the values that the next turn must send again: the ID of a stored response, and the items, if any of them
// is not a plain message or call. Incomplete items are not stored, because they would not match the text.
func (d *responsesDecoder) keepMetadata() {
	special := false
	kept := make([]map[string]json.RawMessage, 0, len(d.items))
	for _, it := range d.items {
		kept = append(kept, it.fields)
		special = special || it.kind != "function_call" && (it.kind != "message" || it.fields["phase"] != nil)
	}
	d.reply.Metadata = map[string]json.RawMessage{}
	if special && d.find(func(it *item) bool { return it.fields == nil }) == nil {
		d.reply.Metadata[outputKey] = wire.JSON(kept)
	}
	if d.stateful {
		d.reply.Metadata[responseKey] = wire.JSON(d.reply.ID)
	}
	if len(d.reply.Metadata) == 0 {
		d.reply.Metadata = nil
	}
}

// responsesUsage reads the usage of a response.
func responsesUsage(raw json.RawMessage) (llm.Usage, bool) {
	v := wire.ReadCounts(raw)
	u := llm.Usage{
		InputTokens: v.Known("input_tokens"), OutputTokens: v.Known("output_tokens"),
		CachedInputTokens: v.In("input_tokens_details").Of("cached_tokens"), CacheWriteTokens: v.In("input_tokens_details").Of("cache_write_tokens"),
		ReasoningTokens: v.In("output_tokens_details").Of("reasoning_tokens"), Raw: raw,
	}
	return u, u.InputTokens != nil || u.OutputTokens != nil
}
