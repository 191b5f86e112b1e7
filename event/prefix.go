package event

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const fence = "```"

// maxPartial is the maximum number of bytes kept per answer for its partial values.
const maxPartial = 4 << 20

// A prefix reads a JSON object or array that arrives in pieces. At any time, its value is the part that has arrived, possibly
// with an incomplete string, but without a cut-off number or name. A longer prefix only extends the value: strings grow, and
// items are added to arrays and objects. Each byte is read once. The names within an object must differ.
type prefix struct {
	text []byte // the text, starting with the first bracket
	pos  int    // the length of the part of text that was read
	open []byte // the closing brackets that are missing
	sure int    // the number of bytes of text that, followed by open, are valid JSON
	cut  int    // within a string value: text[:cut] followed by a quote and open is valid JSON; otherwise 0

	state  state
	ticks  int  // the number of backticks at the end of the prose before a code block
	scalar int  // the start of a number, true, false or null
	esc    int  // the start of an escape in a string; 0 if there is none
	high   bool // whether the escape at cut is the first half of a surrogate pair
}

type state uint8

// The states of a prefix. The first states are for the text before the value, as in Unfence.
const (
	atStart state = iota
	inProse
	inLanguage // within the rest of the line that opens a code block
	inBlock
	wantValue
	wantFirst // expects a value or the end of an array
	wantProp  // expects a name or the end of an object
	wantName
	wantColon
	wantNext // expects a comma or the end of the array or object
	inScalar // within a number, true, false or null
	inName
	inString
	complete
	broken // not JSON: nothing more is read
)

// add reads a piece.
func (p *prefix) add(piece string) {
	if p.state < wantValue {
		piece = p.begin(piece)
	}
	if p.state >= complete {
		return
	}
	if len(p.text)+len(piece) > maxPartial {
		p.state = broken
		return
	}
	p.text = append(p.text, piece...)
	for p.pos < len(p.text) && p.state < complete {
		c := p.text[p.pos]
		switch {
		case p.state == inString || p.state == inName:
			p.pos++
			p.inside(c)
		case p.state == inScalar && !space(c) && c != ',' && c != ']' && c != '}':
			p.pos++
		default:
			p.outside(c)
		}
	}
}

// begin finds the start of the value in a piece and returns the piece from there.
func (p *prefix) begin(piece string) string {
	for i := range len(piece) {
		switch c := piece[i]; {
		case p.state == inProse && c == '`':
			if p.ticks++; p.ticks == len(fence) {
				p.state = inLanguage
			}
		case p.state == inProse:
			p.ticks = 0
		case p.state == inLanguage && c == '\n':
			p.state = inBlock
		case p.state == inLanguage || space(c):
		case c == '{' || c == '[':
			p.state = wantValue
			return piece[i:]
		case p.state == inBlock:
			p.state = broken
			return ""
		case c == '`':
			p.state, p.ticks = inProse, 1
		default:
			p.state = inProse
		}
	}
	return ""
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// outside processes a byte outside strings.
func (p *prefix) outside(c byte) {
	if p.state == inScalar { // c is the first byte after a scalar
		if !json.Valid(p.text[p.scalar:p.pos]) {
			p.state = broken
			return
		}
		p.sure, p.state = p.pos, wantNext
	}
	if p.pos++; space(c) {
		return
	}
	value := p.state == wantValue || p.state == wantFirst
	var closing byte
	if len(p.open) > 0 {
		closing = p.open[len(p.open)-1]
	}
	switch {
	case value && c == '{':
		p.open, p.sure, p.state = append(p.open, '}'), p.pos, wantProp
	case value && c == '[':
		p.open, p.sure, p.state = append(p.open, ']'), p.pos, wantFirst
	case value && c == '"':
		p.state, p.cut = inString, p.pos
	case value && (c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n'):
		p.state, p.scalar = inScalar, p.pos-1
	case c == '"' && (p.state == wantName || p.state == wantProp):
		p.state = inName
	case c == ':' && p.state == wantColon:
		p.state = wantValue
	case c == ',' && p.state == wantNext && closing == '}':
		p.state = wantName
	case c == ',' && p.state == wantNext:
		p.state = wantValue
	case c == closing && (p.state == wantNext || p.state == wantProp || p.state == wantFirst):
		p.open, p.sure, p.state = p.open[:len(p.open)-1], p.pos, wantNext
		if len(p.open) == 0 {
			p.state = complete
		}
	default:
		p.state = broken
	}
}

// inside processes a byte of a string or a name. A character of a string counts only when it is complete, so the first half of a
// surrogate pair counts together with the second.
func (p *prefix) inside(c byte) {
	switch {
	case p.esc > 0:
		p.escape(c)
	case c == '"' && p.state == inName:
		p.state = wantColon
	case c == '"':
		p.sure, p.cut, p.high, p.state = p.pos, 0, false, wantNext
	case c == '\\':
		p.esc = p.pos - 1
	case c < ' ':
		p.state = broken
	case p.state == inName:
	case c < utf8.RuneSelf:
		p.cut, p.high = p.pos, false
	default:
		if p.high {
			p.cut, p.high = p.pos-1, false
		}
		for p.cut < p.pos && utf8.FullRune(p.text[p.cut:p.pos]) {
			_, n := utf8.DecodeRune(p.text[p.cut:p.pos])
			p.cut += n
		}
	}
}

// escape processes a byte of an escape sequence.
func (p *prefix) escape(c byte) {
	n := p.pos - p.esc
	hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	switch {
	case n == 2 && c == 'u' || n > 2 && n < 6 && hex:
		return
	case n == 2 && strings.IndexByte(`"\/bfnrt`, c) >= 0 || n == 6 && hex:
	default:
		p.state = broken
		return
	}
	start := p.esc
	p.esc = 0
	if p.state == inName {
		return
	}
	p.cut, p.high = p.pos, false
	if digits := p.text[start+2:]; n == 6 && digits[0]|0x20 == 'd' && strings.IndexByte("89abAB", digits[1]) >= 0 {
		p.cut, p.high = start, true
	}
}

// size returns the length of the value. Two values of the same answer with equal sizes are equal.
func (p *prefix) size() int {
	if p.cut > 0 {
		return p.cut + 1 + len(p.open)
	}
	return p.sure + len(p.open)
}

// value returns the part of the value that has arrived, as valid JSON, or nil if nothing has arrived. If strings is false, it
// omits a cut-off string.
func (p *prefix) value(strings bool) []byte {
	if p.sure == 0 {
		return nil
	}
	end, quote := p.sure, ""
	if strings && p.cut > 0 {
		end, quote = p.cut, `"`
	}
	out := make([]byte, 0, p.size())
	out = append(append(out, p.text[:end]...), quote...)
	for i := len(p.open) - 1; i >= 0; i-- {
		out = append(out, p.open[i])
	}
	return out
}
