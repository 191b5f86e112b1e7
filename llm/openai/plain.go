package openai

import "github.com/stonelayer/stone/llm"

// plainChunk is the chunk that nearly every event is: a piece of text, of reasoning,
// or nothing.
type plainChunk struct {
	content, reasoning string
}

// readPlain reads such a chunk without the general decoder. It takes nothing that
// would mean more than its text, so that a chunk with anything else in it is read in
// full. Before the first of those there are no id and model yet.
func (d *decoder) readPlain(data []byte) (plainChunk, bool) {
	var p plainChunk
	if d.reply.ID == "" || d.reply.Model == "" {
		return p, false
	}
	c := &d.cursor
	c.Reset(data)
	c.Open('{')
	choices := false
	for first := true; c.More('}', first); first = false {
		switch string(c.Key()) {
		case "choices":
			if choices {
				c.Fail()
			}
			choices = true
			d.plainChoices(&p)
		case "id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "obfuscation":
			c.Skip()
		default:
			if !c.Null() {
				c.Fail()
			}
		}
		if c.Bad() {
			return p, false
		}
	}
	return p, choices && c.End()
}

func (d *decoder) plainChoices(p *plainChunk) {
	c := &d.cursor
	c.Open('[')
	if !c.More(']', true) {
		return
	}
	c.Open('{')
	delta := false
	for first := true; c.More('}', first); first = false {
		switch string(c.Key()) {
		case "index":
			if c.Int() != 0 {
				c.Fail()
			}
		case "delta":
			if delta {
				c.Fail()
			}
			delta = true
			d.plainDelta(p)
		default:
			if !c.Null() {
				c.Fail()
			}
		}
	}
	if c.More(']', false) {
		c.Fail() // several choices
	}
}

func (d *decoder) plainDelta(p *plainChunk) {
	c := &d.cursor
	c.Open('{')
	var content, reasoningContent, reasoning string
	var seen [3]bool
	for first := true; c.More('}', first); first = false {
		var to *string
		var field int
		switch string(c.Key()) {
		case "content":
			to, field = &content, 0
		case "reasoning_content":
			to, field = &reasoningContent, 1
		case "reasoning":
			to, field = &reasoning, 2
		case "role", "channel":
			c.Skip()
			continue
		default:
			if !c.Null() {
				c.Fail()
			}
			continue
		}
		if seen[field] {
			c.Fail()
		}
		seen[field] = true
		if !c.Null() {
			*to = string(c.String())
		}
	}
	if reasoningContent == "" {
		reasoningContent = reasoning
	}
	p.content, p.reasoning = content, reasoningContent
}

// plain takes in a plain chunk.
func (d *decoder) plain(out []llm.Delta, p plainChunk) []llm.Delta {
	out = d.emit(out, llm.Reasoning, p.reasoning)
	return d.content(out, piece{llm.Text, p.content})
}
