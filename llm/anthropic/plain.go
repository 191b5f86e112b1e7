package anthropic

import "github.com/stonelayer/stone/llm"

// readPlain reads the event that most are, a piece of text or thinking, without the
// general decoder. It takes nothing that would mean more than its text.
func (d *decoder) readPlain(data []byte) (index int, kind, text string, ok bool) {
	c := &d.cursor
	c.Reset(data)
	c.Open('{')
	var fields [3]bool
	once := func(i int) {
		if fields[i] {
			c.Fail()
		}
		fields[i] = true
	}
	for first := true; c.More('}', first); first = false {
		switch string(c.Key()) {
		case "type":
			once(0)
			if string(c.Plain()) != "content_block_delta" {
				c.Fail()
			}
		case "index":
			once(1)
			index = c.Int()
		case "delta":
			once(2)
			kind, text = d.plainDelta()
		default:
			c.Fail()
		}
		if c.Bad() {
			return 0, "", "", false
		}
	}
	return index, kind, text, c.End() && fields == [3]bool{true, true, true}
}

func (d *decoder) plainDelta() (kind, text string) {
	c := &d.cursor
	c.Open('{')
	field := ""
	for first := true; c.More('}', first); first = false {
		switch string(c.Key()) {
		case "type":
			switch string(c.Plain()) {
			case "text_delta":
				kind = "text"
			case "thinking_delta":
				kind = "thinking"
			default:
				c.Fail()
			}
		case "text":
			field, text = field+"text", string(c.String())
		case "thinking":
			field, text = field+"thinking", string(c.String())
		default:
			c.Fail()
		}
	}
	if kind == "" || field != kind {
		c.Fail()
	}
	return kind, text
}

// plain takes in such a piece.
func (d *decoder) plain(out []llm.Delta, index int, kind, text string) ([]llm.Delta, error) {
	b := d.block(index)
	switch {
	case !d.started:
		return out, d.protocol("content_block_delta before message_start")
	case b == nil:
		return out, d.protocol("a delta for block %d, which has not begun", index)
	case b.kind != kind:
		return out, d.protocol("%s_delta for block %d of type %s", kind, index, b.kind)
	case kind == "text":
		return d.grow(out, b, llm.Text, text), nil
	}
	return d.grow(out, b, llm.Reasoning, text), nil
}
