package openai

import (
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/llm"
)

// call is the part of a tool call received so far.
type call struct {
	index    int // the server's number, -1 when it gave none
	id, name string
	args     []byte
}

// toolCall handles a piece of a tool call.
func (d *chatDecoder) toolCall(out []llm.Delta, in *callDelta) []llm.Delta {
	at := d.findCall(in)
	if at < 0 {
		at = len(d.calls)
		c := &call{index: -1, id: in.ID, name: in.Function.Name}
		if in.Index != nil {
			c.index = *in.Index
		}
		if c.id == "" {
			// The result must name the call that it answers.
			c.id = fmt.Sprintf("call_%d", at)
		}
		d.calls = append(d.calls, c)
		out = append(out, llm.Delta{Kind: llm.ToolCallStart, Index: at, Call: &llm.ToolCall{ID: c.id, Name: c.name}})
	}
	c := d.calls[at]
	if c.name == "" {
		c.name = in.Function.Name
	}
	args := arguments(in.Function.Arguments)
	if args == "" {
		return out
	}
	c.args = append(c.args, args...)
	return append(out, llm.Delta{Kind: llm.ToolInput, Index: at, Text: args})
}

// findCall returns the call that a piece continues, or -1 if it starts one. Servers
// may omit the index, count from one, give all calls the same index, or send
// empty or repeated ids and names with every piece.
func (d *chatDecoder) findCall(in *callDelta) int {
	for i := len(d.calls) - 1; i >= 0; i-- {
		c := d.calls[i]
		if in.Index != nil && c.index != *in.Index {
			continue
		}
		begins := in.Function.Name != "" && in.ID != "" && in.ID != c.id
		if in.Index == nil && in.Function.Name != "" && in.ID == "" {
			begins = json.Valid(c.args) // without any number, a name after a whole call is a new one
		}
		if begins {
			return -1
		}
		return i
	}
	return -1
}

// arguments returns a piece of the arguments, which are a string of JSON, or from
// some servers the JSON itself.
func arguments(raw json.RawMessage) string {
	if s, ok := str(raw); ok {
		return s
	}
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return string(raw)
}
