package jsonv2

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Scanner reads objects member by member, one document after another, for readers of streams whose
// events are small and many: Unmarshal spends three quarters of such an event on reflection, on looking
// up names and on values that nobody keeps.
//
// It accepts part of what UnmarshalLenient accepts, with the same result. After a value that it refuses
// its methods return zero values and Done returns false; such a document is for UnmarshalLenient, which
// reads it or says what is wrong. Bytes that it returns are valid until the next call. The zero value is
// ready after Reset.
type Scanner struct {
	in     Decoder
	buffer bytes.Buffer
	failed bool
}

// Reset begins a document, which must not change while it is read.
func (s *Scanner) Reset(data []byte) {
	s.buffer = *bytes.NewBuffer(data)
	s.in.Reset(&s.buffer, lenient)
	s.failed = false
}

// Done reports whether the whole document was read and nothing was refused.
func (s *Scanner) Done() bool {
	return !s.failed && s.in.StackDepth() == 0 && len(bytes.TrimSpace(s.in.UnreadBuffer())) == 0
}

// fail refuses the document.
func (s *Scanner) fail() []byte {
	s.failed = true
	return nil
}

// Enter begins the object or array that comes next, as open is { or [, and returns whether there is one.
func (s *Scanner) Enter(open Kind) bool {
	if s.failed || s.in.PeekKind() != open {
		s.fail()
		return false
	}
	_, err := s.in.ReadToken()
	s.failed = err != nil
	return err == nil
}

// More reports whether the array has another element. It leaves an array that has none.
func (s *Scanner) More() bool {
	switch {
	case s.failed:
		return false
	case s.in.PeekKind() != ']':
		return true
	}
	_, err := s.in.ReadToken()
	s.failed = err != nil
	return false
}

// Member returns the name of the object's next member, whose value the caller reads or skips. It returns
// nil at the end of the object, which it leaves.
func (s *Scanner) Member() []byte {
	if s.failed {
		return nil
	}
	if s.in.PeekKind() == '}' {
		_, err := s.in.ReadToken()
		s.failed = err != nil
		return nil
	}
	name, err := s.in.ReadValue()
	if err != nil || bytes.IndexByte(name, '\\') >= 0 {
		return s.fail()
	}
	return name[1 : len(name)-1]
}

// Kind returns the kind of the next value.
func (s *Scanner) Kind() Kind { return s.in.PeekKind() }

// Skip passes over a value.
func (s *Scanner) Skip() {
	if !s.failed {
		s.failed = s.in.SkipValue() != nil
	}
}

// Raw returns a value as it stands.
func (s *Scanner) Raw() []byte {
	if s.failed {
		return nil
	}
	v, err := s.in.ReadValue()
	if err != nil {
		return s.fail()
	}
	return v
}

// null is what Keep returns for it: servers send it with every event.
var null = []byte("null")

// Keep is Raw to keep, but not to change.
func (s *Scanner) Keep() []byte {
	v := s.Raw()
	if string(v) == "null" {
		return null
	}
	return bytes.Clone(v)
}

// Bytes returns the text of a string, empty for null.
func (s *Scanner) Bytes() []byte {
	v := s.Raw()
	switch {
	case len(v) == 0 || v[0] == 'n':
		return nil
	case v[0] != '"' || !utf8.Valid(v):
		return s.fail()
	case bytes.IndexByte(v, '\\') < 0:
		return v[1 : len(v)-1]
	}
	text, err := AppendUnquote(nil, v)
	if err != nil {
		return s.fail()
	}
	return text
}

// Text is Bytes to keep.
func (s *Scanner) Text() string { return string(s.Bytes()) }

// Again is Text of a string that seldom differs from its last value, which costs no memory then.
func (s *Scanner) Again(last string) string {
	if b := s.Bytes(); string(b) != last {
		return string(b)
	}
	return last
}

// Int returns an integer, 0 for null.
func (s *Scanner) Int() int {
	v := s.Raw()
	if len(v) == 0 || v[0] == 'n' {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || v[0] == '-' {
		s.fail()
		return 0
	}
	return n
}

// Decode reads a value as UnmarshalLenient does.
func (s *Scanner) Decode(to any) {
	if !s.failed {
		s.failed = json.UnmarshalDecode(&s.in, to) != nil
	}
}
