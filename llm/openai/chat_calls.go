package openai

import (
	"encoding/json"

	"github.com/stonelayer/stone/llm"
)

// call is the part of a tool call that has been received so far.
type call struct {
	index    int    // the server's index of the call; -1 if there is none
	given    string // the server's ID; "" if there is none
	id, name string
	args     []byte
}

// toolCall handles a piece of a tool call, or a complete call in a document.
func (d *chatDecoder) toolCall(out []llm.Delta, in *callDelta, whole bool) []llm.Delta {
	args := arguments(in.Function.Arguments)
	at, again := -1, false
	if !whole {
		at, again = d.findCall(in, args)
	}
	if again {
		return out
	}
	if at < 0 {
		at = len(d.calls)
		c := &call{index: -1, id: in.ID, given: in.ID, name: in.Function.Name}
		if in.Index != nil {
			c.index = *in.Index
		}
		if c.id == "" || d.last(func(other *call) bool { return other.id == c.id }) >= 0 {
			c.id = d.ids.Next() // the result must name the call to which it belongs
		}
		d.calls = append(d.calls, c)
		out = append(out, llm.Delta{Kind: llm.ToolCallStart, Index: at, Call: &llm.ToolCall{ID: c.id, Name: c.name}})
	}
	c := d.calls[at]
	if c.name == "" {
		c.name = in.Function.Name
	}
	if args == "" {
		return out
	}
	c.args = append(c.args, args...)
	return append(out, llm.Delta{Kind: llm.ToolInput, Index: at, Text: args})
}

// findCall returns the index of the call that a piece continues, or -1 if the piece starts a call. Calls are identified by ID, or
// else by index, or else by order. This is because servers may omit the index, count from one, use the same index or ID for all
// calls, or send empty or repeated IDs and names with every piece. If again is true, the piece repeats a call that has been
// received, as some servers do at the end.
func (d *chatDecoder) findCall(in *callDelta, args string) (at int, again bool) {
	numbered := func(c *call) bool { return in.Index == nil || c.index == *in.Index }
	at = d.last(func(c *call) bool { return in.ID != "" && c.given == in.ID && (numbered(c) || c.index < 0) })
	known := at >= 0
	if !known {
		at = d.last(numbered)
	}
	name := in.Function.Name
	if at < 0 || name == "" {
		return at, false
	}
	switch c := d.calls[at]; {
	case !known && in.ID != "" && c.given != "":
		return -1, false
	case !json.Valid(c.args): // its arguments are incomplete
	case known && name == c.name && args == string(c.args):
		return at, true
	case args != "" || name != c.name:
		return -1, false
	}
	return at, false
}

// last returns the index of the last call for which fits returns true, or -1.
func (d *chatDecoder) last(fits func(*call) bool) int {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if fits(d.calls[i]) {
			return i
		}
	}
	return -1
}

// arguments returns a piece of the arguments, which are a string that contains JSON or, from some servers, the JSON itself.
func arguments(raw json.RawMessage) string {
	if s, ok := str(raw); ok {
		return s
	}
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return string(raw)
}
