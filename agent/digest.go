package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/llm"
)

// turnInput is the input of the step of a turn: two digests of the request. Its JSON
// is made only in runs that have a recorder. A turn repeats the whole conversation
// before it, so only new messages are encoded.
type turnInput struct {
	*conversation
	req *llm.Request
}

// MarshalJSON implements [json.Marshaler].
func (t turnInput) MarshalJSON() ([]byte, error) {
	rest := *t.req
	rest.Messages = nil
	settings, err := canon.Append(nil, &rest)
	if err != nil {
		return nil, err
	}
	said, err := t.digest(t.req.Messages)
	if err != nil {
		return nil, err
	}
	return json.Marshal([2]dag.ID{sha256.Sum256(settings), said})
}

// conversation is the digest of a growing conversation. Each digest covers a message
// and all before it.
type conversation struct {
	messages []llm.Message
	digests  []dag.ID
}

// digest returns the digest of the messages. It encodes the first message that differs
// from those of the previous call, and all after it.
func (c *conversation) digest(messages []llm.Message) (last dag.ID, err error) {
	kept := 0
	for kept < min(len(c.messages), len(messages)) && sameMessage(&c.messages[kept], &messages[kept]) {
		kept++
	}
	c.messages, c.digests = c.messages[:kept], c.digests[:kept]
	if kept > 0 {
		last = c.digests[kept-1]
	}
	for i := range messages[kept:] {
		m := &messages[kept+i]
		raw, err := canon.Append(last[:], m)
		if err != nil {
			return last, err
		}
		last = sha256.Sum256(raw)
		own := *m // a middleware may change the elements of its slices
		own.Content, own.ToolCalls, own.Metadata = slices.Clone(m.Content), slices.Clone(m.ToolCalls), maps.Clone(m.Metadata)
		c.messages, c.digests = append(c.messages, own), append(c.digests, last)
	}
	return last, nil
}

// sameMessage compares two messages. Comparing texts that share memory, such as those
// of earlier turns, costs nothing.
func sameMessage(a, b *llm.Message) bool {
	return a.Role == b.Role && a.CallID == b.CallID && a.IsError == b.IsError &&
		slices.EqualFunc(a.Content, b.Content, samePart) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, sameCall) &&
		maps.EqualFunc(a.Metadata, b.Metadata, sameJSON)
}

func samePart(a, b llm.Part) bool {
	if a.Media != b.Media { // another pointer: encode it again
		return false
	}
	return a.Text == b.Text && bytes.Equal(a.Value, b.Value)
}

func sameCall(a, b llm.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.InputText == b.InputText && sameJSON(a.Input, b.Input)
}

// sameJSON distinguishes empty from null: arguments that were cut off from none.
func sameJSON(a, b json.RawMessage) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}
