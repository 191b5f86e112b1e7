// Package scan reads the few shapes of JSON that make up nearly all of a model's
// stream, without the cost of a general decoder.
//
// A Cursor is strict: it takes only what a general decoder would take as well, and
// turns bad at the first thing that it does not know. The caller then decodes the
// text in full. So it may be simple, and can never change a meaning.
package scan

import "unicode/utf8"

// Cursor walks over one JSON text. Once bad, it stays bad and returns zero values.
type Cursor struct {
	text []byte
	pos  int
	bad  bool
	buf  []byte // for strings with escapes
}

// Reset puts the cursor at the beginning of text.
func (c *Cursor) Reset(text []byte) { c.text, c.pos, c.bad = text, 0, false }

// Bad reports whether the text left the known shapes.
func (c *Cursor) Bad() bool { return c.bad }

// Fail marks the text as not of a known shape.
func (c *Cursor) Fail() { c.bad = true }

// Open steps over b, the bracket that opens an object or array.
func (c *Cursor) Open(b byte) {
	if c.peek() != b {
		c.bad = true
		return
	}
	c.pos++
}

// More steps over the comma before the next element, if there is one, or over the
// closing bracket. first says whether no element was read yet.
func (c *Cursor) More(closing byte, first bool) bool {
	switch b := c.peek(); {
	case c.bad:
		return false
	case b == closing:
		c.pos++
		return false
	case first:
		return true
	case b == ',':
		c.pos++
		return true
	}
	c.bad = true
	return false
}

// Key reads a member's name and the colon. It is valid until the text changes.
func (c *Cursor) Key() []byte {
	key := c.Plain()
	if c.peek() != ':' {
		c.bad = true
		return nil
	}
	c.pos++
	return key
}

// Null steps over a null, if there is one here.
func (c *Cursor) Null() bool {
	if c.peek() == 'n' && c.literal("null") {
		return true
	}
	return false
}

// Skip steps over a string without escapes, a whole number, true, false or null.
func (c *Cursor) Skip() {
	switch b := c.peek(); {
	case b == '"':
		c.Plain()
	case b == 'n':
		c.literal("null")
	case b == 't':
		c.literal("true")
	case b == 'f':
		c.literal("false")
	default:
		c.Int()
	}
}

// Int reads a whole number of at most nine digits that is not negative.
func (c *Cursor) Int() int {
	c.peek()
	start, n := c.pos, 0
	for c.pos < len(c.text) && c.text[c.pos] >= '0' && c.text[c.pos] <= '9' {
		n = n*10 + int(c.text[c.pos]-'0')
		c.pos++
	}
	digits := c.pos - start
	// Longer numbers, such as times, are only ever skipped.
	if digits == 0 || digits > 18 || (digits > 1 && c.text[start] == '0') || !c.delimited() {
		c.bad = true
		return 0
	}
	return n
}

// String reads a string. The result is valid until the next call.
func (c *Cursor) String() []byte {
	if c.peek() != '"' {
		c.bad = true
		return nil
	}
	start := c.pos + 1
	i, ascii := start, true
	for i < len(c.text) {
		switch b := c.text[i]; {
		case b == '"':
			s := c.text[start:i]
			c.pos = i + 1
			if !ascii && !utf8.Valid(s) {
				c.bad = true
			}
			return s
		case b == '\\':
			return c.escaped(start, i)
		case b < ' ':
			c.bad = true
			return nil
		case b >= utf8.RuneSelf:
			ascii = false
		}
		i++
	}
	c.bad = true
	return nil
}

// End reports whether the whole text was read.
func (c *Cursor) End() bool {
	c.skipSpace()
	return !c.bad && c.pos == len(c.text)
}

// escaped reads the rest of a string from its first escape, at i.
func (c *Cursor) escaped(start, i int) []byte {
	c.buf = append(c.buf[:0], c.text[start:i]...)
	for i < len(c.text) {
		switch b := c.text[i]; {
		case b == '"':
			c.pos = i + 1
			if !utf8.Valid(c.buf) {
				c.bad = true
			}
			return c.buf
		case b < ' ':
			c.bad = true
			return nil
		case b != '\\':
			c.buf = append(c.buf, b)
			i++
		default:
			r, n := unescape(c.text[i:])
			if n == 0 {
				c.bad = true
				return nil
			}
			c.buf = utf8.AppendRune(c.buf, r)
			i += n
		}
	}
	c.bad = true
	return nil
}

// unescape reads one escape and returns its length, 0 for one that is wrong or
// half of a surrogate pair.
func unescape(s []byte) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		if len(s) < 6 {
			return 0, 0
		}
		var r rune
		for _, h := range s[2:6] {
			d := hexDigit(h)
			if d < 0 {
				return 0, 0
			}
			r = r<<4 | rune(d)
		}
		if utf8.ValidRune(r) {
			return r, 6
		}
	}
	return 0, 0
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// Plain reads a string of printable ASCII without escapes. The result is valid until
// the text changes.
func (c *Cursor) Plain() []byte {
	if c.peek() != '"' {
		c.bad = true
		return nil
	}
	start := c.pos + 1
	for i := start; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case b == '"':
			c.pos = i + 1
			return c.text[start:i]
		case b == '\\' || b < ' ' || b >= utf8.RuneSelf:
			c.bad = true
			return nil
		}
	}
	c.bad = true
	return nil
}

func (c *Cursor) literal(word string) bool {
	if rest := c.text[c.pos:]; len(rest) < len(word) || string(rest[:len(word)]) != word {
		c.bad = true
		return false
	}
	c.pos += len(word)
	return true
}

// delimited reports whether a number ends here.
func (c *Cursor) delimited() bool {
	if c.pos == len(c.text) {
		return true
	}
	switch c.text[c.pos] {
	case ',', '}', ']', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}

func (c *Cursor) skipSpace() {
	for c.pos < len(c.text) {
		switch c.text[c.pos] {
		case ' ', '\n', '\r', '\t':
			c.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (c *Cursor) peek() byte {
	if c.bad {
		return 0
	}
	if c.pos < len(c.text) && c.text[c.pos] > ' ' {
		return c.text[c.pos]
	}
	c.skipSpace()
	if c.pos == len(c.text) {
		return 0
	}
	return c.text[c.pos]
}
