package call

import (
	"bytes"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/canon"
)

// canonical returns the canonical form of JSON text. Most of what capabilities
// written in Go answer has it already, which is seen sooner than made.
func canonical(data JSON) (JSON, error) {
	c := seer{data: data}
	if c.value(32) && c.i == len(data) {
		return bytes.Clone(data), nil
	}
	return canon.AppendJSON(make([]byte, 0, len(data)), data)
}

// A seer tells that text is canonical, where that is easy to tell.
type seer struct {
	data []byte
	i    int
}

func (c *seer) next(b byte) bool {
	if c.i < len(c.data) && c.data[c.i] == b {
		c.i++
		return true
	}
	return false
}

func (c *seer) value(depth int) bool {
	if c.i == len(c.data) || depth == 0 {
		return false
	}
	switch c.data[c.i] {
	case '"':
		_, ok := c.text()
		return ok
	case '{':
		return c.object(depth - 1)
	case '[':
		return c.array(depth - 1)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.integer()
}

func (c *seer) word(w string) bool {
	if !bytes.HasPrefix(c.data[c.i:], []byte(w)) {
		return false
	}
	c.i += len(w)
	return true
}

// text takes a string without escapes.
func (c *seer) text() (s []byte, ok bool) {
	if !c.next('"') {
		return nil, false
	}
	for start := c.i; c.i < len(c.data); c.i++ {
		switch b := c.data[c.i]; {
		case b == '"':
			c.i++
			return c.data[start : c.i-1], true
		case b < ' ' || b == '\\' || b >= utf8.RuneSelf:
			return nil, false
		}
	}
	return nil, false
}

func (c *seer) integer() bool {
	minus := c.next('-')
	start := c.i
	for c.i < len(c.data) && '0' <= c.data[c.i] && c.data[c.i] <= '9' {
		c.i++
	}
	n := c.i - start
	return n > 0 && n < 16 && (c.data[start] != '0' || n == 1 && !minus)
}

func (c *seer) object(depth int) bool {
	c.i++
	if c.next('}') {
		return true
	}
	for last := []byte(nil); ; {
		key, ok := c.text()
		if !ok || last != nil && bytes.Compare(last, key) >= 0 || !c.next(':') || !c.value(depth) {
			return false
		}
		if last = key; !c.next(',') {
			return c.next('}')
		}
	}
}

func (c *seer) array(depth int) bool {
	c.i++
	if c.next(']') {
		return true
	}
	for c.value(depth) {
		if !c.next(',') {
			return c.next(']')
		}
	}
	return false
}
