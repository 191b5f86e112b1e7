package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// event contains the fields of an event that are read.
type event struct {
	Type         string          `json:"type"`
	Index        int             `json:"index"`
	Message      *answer         `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        json.RawMessage `json:"delta"`
	piece        *blockDelta     // the delta, if it has already been decoded
	Usage        json.RawMessage `json:"usage"`
	Error        json.RawMessage `json:"error"`
	RequestID    string          `json:"request_id"`
}

// answer is the beginning of a streamed answer, or a complete answer that is not a stream.
type answer struct {
	ID      string            `json:"id"`
	Model   string            `json:"model"`
	Content []json.RawMessage `json:"content"`
	Usage   json.RawMessage   `json:"usage"`
	ending
}

// ending describes how an answer stopped.
type ending struct {
	StopReason  string `json:"stop_reason"`
	StopDetails *struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// decoder reads one answer.
type decoder struct {
	reply     llm.Reply
	text      strings.Builder
	reasoning strings.Builder
	blocks    []*block // the blocks, in the order in which they started
	calls     int      // the number of blocks that are tool calls for the client
	usage     wire.Counts
	ids       wire.MadeIDs
	started   bool
	stopped   bool

	scanner jsonv2.Scanner
	scanned event      // the last event that the scanner read
	piece   blockDelta // the delta of that event
}

func newDecoder(requestID string) *decoder {
	return &decoder{reply: llm.Reply{RequestID: requestID}}
}

// Event handles one event. The data contains the event's type, which the name repeats.
func (d *decoder) Event(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return out, false, nil // not part of this protocol, but some proxies add it
	}
	if wire.Ping(data) && name != "error" {
		return out, false, nil // a ping, or null
	}
	e, err := d.read(data)
	if err != nil {
		if name == "error" {
			return out, false, &llm.ProviderError{Message: string(data), RequestID: d.reply.RequestID}
		}
		if name != "" && name != "ping" && !strings.HasPrefix(name, "message") && !strings.HasPrefix(name, "content_block") {
			return out, false, nil // an event of the server's own
		}
		return out, false, d.protocol("an event that is not an object: %v", err)
	}
	if e.Type == "error" || name == "error" {
		return out, false, d.failure(e, data)
	}
	if err := d.expected(e); err != nil {
		return out, false, err
	}
	switch e.Type {
	case "message": // the whole answer in one event
		out, err = d.Whole(out, data)
	case "message_start":
		out, err = d.start(out, e.Message)
	case "content_block_start":
		out, err = d.beginBlock(out, e.Index, e.ContentBlock)
	case "content_block_delta":
		out, err = d.blockDelta(out, e)
	case "content_block_stop":
		if b := d.block(e.Index); b != nil {
			b.ended = true
		}
	case "message_delta":
		var end ending
		if len(e.Delta) > 0 {
			err = jsonv2.UnmarshalLenient(e.Delta, &end)
		}
		d.addUsage(e.Usage)
		out = d.end(out, end)
	case "message_stop":
		d.stopped = true
	}
	if err != nil {
		if _, ok := err.(*llm.ProtocolError); !ok {
			err = d.protocol("%s: %v", e.Type, err)
		}
	}
	return out, d.stopped, err
}

// expected rejects events of an answer that has not started.
func (d *decoder) expected(e *event) error {
	switch e.Type {
	case "message_start":
		return nil
	}
	known := strings.HasPrefix(e.Type, "content_block_") || strings.HasPrefix(e.Type, "message_")
	if known && !d.started {
		return d.protocol("%s before message_start", e.Type)
	}
	return nil
}

// Whole handles an answer that is not a stream.
func (d *decoder) Whole(out []llm.Delta, data []byte) ([]llm.Delta, error) {
	var e event
	var m answer
	if err := jsonv2.UnmarshalLenient(data, &e); err != nil {
		return out, d.protocol("a document that is not an answer: %v", err)
	}
	if e.Type == "error" || wire.Says(e.Error) {
		return out, d.failure(&e, data)
	}
	if err := jsonv2.UnmarshalLenient(data, &m); err != nil || e.Type != "message" {
		return out, d.protocol("a document of type %q that is not a message", e.Type)
	}
	out, err := d.start(out, &m)
	d.stopped = err == nil
	return out, err
}

// End ends the answer.
func (d *decoder) End(out []llm.Delta) ([]llm.Delta, error) {
	r := &d.reply
	r.Text, r.Reasoning = d.text.String(), d.reasoning.String()
	d.finishBlocks()
	d.finishUsage()
	if !d.stopped {
		return out, &llm.TruncatedError{RequestID: r.RequestID}
	}
	return out, nil
}

// Reply returns the reply received so far.
func (d *decoder) Reply() *llm.Reply { return &d.reply }

// start handles message_start. A proxy may send it twice; two different answers in one
// stream are an error.
func (d *decoder) start(out []llm.Delta, m *answer) ([]llm.Delta, error) {
	if m == nil {
		return out, d.protocol("message_start without a message")
	}
	if d.started {
		if m.ID != d.reply.ID {
			return out, d.protocol("a second message_start, of %q, within %q", m.ID, d.reply.ID)
		}
		return out, nil
	}
	d.started = true
	d.reply.ID, d.reply.Model = m.ID, m.Model
	d.addUsage(m.Usage)
	out = d.end(out, m.ending)
	var err error
	for i, raw := range m.Content {
		if out, err = d.beginBlock(out, i, raw); err != nil {
			return out, err
		}
		d.blocks[i].ended = true
	}
	return out, nil
}

// end handles the end of the answer. Only the end contains the explanation for a refusal.
func (d *decoder) end(out []llm.Delta, e ending) []llm.Delta {
	if e.StopReason != "" {
		d.reply.StopReason = e.StopReason
	}
	if e.StopDetails == nil || d.reply.StopReason != "refusal" || d.reply.Refusal != "" || e.StopDetails.Explanation == "" {
		return out
	}
	d.reply.Refusal = e.StopDetails.Explanation
	return append(out, llm.Delta{Kind: llm.Refusal, Text: d.reply.Refusal})
}

// addUsage overwrites the fields of the usage so far with newer values. It ignores zeros, which some servers send at the end.
func (d *decoder) addUsage(raw json.RawMessage) {
	usage := wire.ReadCounts(raw)
	for name, value := range usage {
		older, newer := d.usage.Known(name), usage.Known(name)
		if string(value) == "null" || older != nil && (newer == nil || *newer == 0) {
			continue
		}
		if d.usage == nil {
			d.usage = wire.Counts{}
		}
		d.usage[name] = value
	}
}

func (d *decoder) finishUsage() {
	if len(d.usage) == 0 {
		return
	}
	raw, err := json.Marshal(d.usage)
	if err != nil {
		raw = nil // cannot fail, because the value has been decoded from JSON
	}
	u := llm.Usage{
		Searches:          d.usage.In("server_tool_use").Of("web_search_requests"),
		CacheHourTokens:   d.usage.In("cache_creation").Of("ephemeral_1h_input_tokens"),
		InputTokens:       d.usage.Known("input_tokens"), // does not include cached tokens
		CachedInputTokens: d.usage.Of("cache_read_input_tokens"),
		CacheWriteTokens:  d.usage.Of("cache_creation_input_tokens"),
		Raw:               raw,
	}
	if cached := u.CachedInputTokens + u.CacheWriteTokens; u.InputTokens != nil || cached > 0 {
		u.InputTokens = new(d.usage.Of("input_tokens") + cached)
	}
	if d.stopped || d.reply.StopReason != "" { // the initial number does not include this answer
		u.OutputTokens = d.usage.Known("output_tokens")
	}
	d.reply.Usage = u
}

// failure converts an error event of the provider to an error.
func (d *decoder) failure(e *event, data []byte) error {
	failure := &llm.ProviderError{Message: string(data), RequestID: d.reply.RequestID}
	if failure.RequestID == "" {
		failure.RequestID = e.RequestID
		d.reply.RequestID = e.RequestID
	}
	var inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var text string
	switch {
	case jsonv2.UnmarshalLenient(e.Error, &inner) == nil && inner.Message != "":
		failure.Message, failure.Type = inner.Message, inner.Type
	case jsonv2.UnmarshalLenient(e.Error, &text) == nil:
		failure.Message = text
	}
	return failure
}

func (d *decoder) protocol(format string, args ...any) error {
	return &llm.ProtocolError{Reason: fmt.Sprintf(format, args...), RequestID: d.reply.RequestID}
}
