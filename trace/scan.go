package trace

import (
	"encoding/binary"
	"math/bits"
)

// maxScanDepth bounds the scanner's recursion; deeper lines are left to
// encoding/json.
const maxScanDepth = 64

// scanType finds data.event in a line without decoding it. It checks the whole
// grammar of JSON, because a line counts only if it is valid to its end.
//
// ok is true only for lines that line.parse accepts too, with the same type. False means
// no more than "not sure": the line may be broken, or contain something too rare for a
// second implementation here (escapes in names, a name twice, deep nesting).
func scanType(text []byte) (typ []byte, ok bool) {
	s := scanner{b: text}
	if s.next() != '{' || !s.object(1, envelope) {
		return nil, false
	}
	s.next()
	return s.typ, s.i == len(s.b)
}

// A scanner walks over JSON. Its methods that return a bool return false as soon as they
// are not sure.
type scanner struct {
	b []byte
	i int // of the next byte

	typ                 []byte
	seenData, seenEvent bool
}

// A role says which object of the line the scanner is in.
type role int

const (
	other role = iota
	envelope
	data
)

// next skips white space and returns the byte after it, 0 at the end.
func (s *scanner) next() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// object skips an object, from its brace on.
func (s *scanner) object(depth int, r role) bool {
	s.i++
	if s.next() == '}' {
		s.i++
		return true
	}
	for depth <= maxScanDepth && s.next() == '"' {
		key, plain, ok := s.text()
		if !ok || s.next() != ':' {
			return false
		}
		s.i++
		if r == other {
			ok = s.value(depth)
		} else {
			ok = plain && s.member(key, depth, r)
		}
		if !ok {
			return false
		}
		switch s.next() {
		case ',':
			s.i++
			s.next()
		case '}':
			s.i++
			return true
		default:
			return false
		}
	}
	return false
}

// member skips the value of a key of the envelope or the data.
func (s *scanner) member(key []byte, depth int, r role) bool {
	c := s.next()
	switch {
	case r == envelope && string(key) == "data":
		if s.seenData {
			return false
		}
		s.seenData = true
		if c == '{' {
			return s.object(depth+1, data)
		}
	case r == data && string(key) == "event":
		if s.seenEvent || c != '"' {
			return false
		}
		s.seenEvent = true
		typ, plain, ok := s.text()
		s.typ = typ
		return plain && ok
	}
	return s.value(depth)
}

// value skips any value.
func (s *scanner) value(depth int) bool {
	switch c := s.next(); c {
	case '"':
		_, _, ok := s.text()
		return ok
	case '{':
		return s.object(depth+1, other)
	case '[':
		return s.array(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// array skips an array, from its bracket on.
func (s *scanner) array(depth int) bool {
	s.i++
	if s.next() == ']' {
		s.i++
		return true
	}
	for depth <= maxScanDepth && s.value(depth) {
		switch s.next() {
		case ',':
			s.i++
		case ']':
			s.i++
			return true
		default:
			return false
		}
	}
	return false
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) skip(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i > from
}

// text skips a string, from its quote on, and returns the bytes between the quotes. It is
// plain if it is ASCII without escapes, so that the bytes are the value.
func (s *scanner) text() (raw []byte, plain, ok bool) {
	s.i++
	from := s.i
	plain = true
	for {
		if !s.run(&plain) {
			return nil, false, false
		}
		switch s.b[s.i] {
		case '"':
			raw = s.b[from:s.i]
			s.i++
			return raw, plain, true
		case '\\':
			plain = false
			if !s.escape() {
				return nil, false, false
			}
		default: // a control character
			return nil, false, false
		}
	}
}

// run moves to the next quote, backslash or control character, eight bytes at a time. It
// clears plain when it passes a byte beyond ASCII.
func (s *scanner) run(plain *bool) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	b, i := s.b, s.i
	var beyond uint64
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		// The lowest high bit set marks the first such byte; bits above it
		// may be carries.
		stop := ((w-0x20*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if stop != 0 {
			n := bits.TrailingZeros64(stop) &^ 7
			beyond |= w & (1<<n - 1)
			s.i = i + n/8
			*plain = *plain && beyond&highs == 0
			return true
		}
		beyond |= w
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < 0x20 {
			break
		}
		beyond |= uint64(c)
	}
	s.i = i
	*plain = *plain && beyond&highs == 0
	return i < len(b)
}

// escape skips one escape sequence, from its backslash on.
func (s *scanner) escape() bool {
	if s.i+1 >= len(s.b) {
		return false
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		if s.i+6 > len(s.b) {
			return false
		}
		for _, c := range s.b[s.i+2 : s.i+6] {
			if c-'0' > 9 && (c|0x20)-'a' > 5 {
				return false
			}
		}
		s.i += 6
		return true
	}
	return false
}
