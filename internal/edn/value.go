package edn

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Kind is the kind of a [Value].
type Kind uint8

// The kinds of values, in the order in which the writer sorts them.
const (
	KindNil     Kind = iota
	KindBool         // true
	KindInt          // 42, 42N: an integer of any size
	KindFloat        // 1.5, ##Inf
	KindDecimal      // 1.5M: exact
	KindChar         // \a
	KindString       // "a"
	KindSymbol       // a/b
	KindKeyword      // :a/b
	KindList         // (1 2)
	KindVector       // [1 2]
	KindMap          // {:a 1}
	KindSet          // #{1 2}
	KindTagged       // #a/b [1 2]
)

var kindNames = [...]string{"nil", "boolean", "integer", "float", "decimal", "character", "string",
	"symbol", "keyword", "list", "vector", "map", "set", "tagged value"}

// String returns the name of the kind, as used in messages, such as "integer" or "tagged value".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// A Value is an EDN value, with its position if it was read from text. The zero Value is nil. Values are immutable. Compare them
// with [Value.Equal], not with ==. A value that was read from a text keeps the text in memory.
type Value struct {
	kind   Kind
	offset uint32      // offset of the value's first byte in source
	num    uint64      // bool, character, int64, bits of a float64, or exponent of a decimal
	text   string      // string, name or tag, or digits of a decimal or an integer beyond int64
	more   *collection // content of a collection or a tagged value; nil if empty
	source *source     // nil for values that the program created
}

// collection holds the content of a list, vector, set, map or tagged value.
type collection struct {
	items []Value                 // for a map: key, value, key, value …
	index map[string]uint32       // for large maps and sets: positions of the keys, by their texts
	depth int                     // depth of nesting
	order atomic.Pointer[[]Value] // sorted items; set when first needed
}

// source is the text that values were read from.
type source struct {
	text  string
	json  bool
	once  sync.Once
	lines []int // offsets of the lines; set when first needed
}

// position returns the line and the column, in characters, of an offset. Both are counted from 1.
func (s *source) position(offset int) (line, column int) {
	s.once.Do(func() {
		s.lines = []int{0}
		for i := 0; i < len(s.text); i++ {
			if s.text[i] == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	})
	low, high := 0, len(s.lines)
	for high-low > 1 {
		if middle := (low + high) / 2; s.lines[middle] <= offset {
			low = middle
		} else {
			high = middle
		}
	}
	return low + 1, utf8.RuneCountInString(s.text[s.lines[low]:offset]) + 1
}

func (s *source) errorf(offset int, format string, args ...any) *Error {
	line, column := s.position(offset)
	return &Error{Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// An Error reports a fault in a text or a value, with its position.
type Error struct {
	Line, Column int // counted from 1, columns in characters; 0 if the value was not read from a text
	Reason       string
}

// Error returns "line:column: reason". Callers can prefix the name of the file.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
}

// Errorf returns an error with the position of the value.
func (v Value) Errorf(format string, args ...any) *Error {
	if v.source == nil {
		return &Error{Reason: fmt.Sprintf(format, args...)}
	}
	return v.source.errorf(int(v.offset), format, args...)
}

// Position returns the line and column of the value in its text. Both count from 1, and the column is in characters. They are 0
// for a value that the program created.
func (v Value) Position() (line, column int) {
	if v.source == nil {
		return 0, 0
	}
	return v.source.position(int(v.offset))
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// IsNil reports whether the value is nil.
func (v Value) IsNil() bool { return v.kind == KindNil }

// IsJSON reports whether the value was read from JSON, where strings replace keywords and
// arrays replace sets.
func (v Value) IsJSON() bool { return v.source != nil && v.source.json }

// Bool returns the value of a boolean. If v is of another kind, ok is false.
func (v Value) Bool() (b, ok bool) { return v.num == 1, v.kind == KindBool }

// Int64 returns the value of an integer. If v is of another kind or does not fit into 64 bits, ok is false.
func (v Value) Int64() (n int64, ok bool) {
	if v.kind != KindInt || v.text != "" {
		return 0, false
	}
	return int64(v.num), true
}

// Float64 returns the float64 nearest to v. If v is not a number, or is outside the range of float64, ok is false.
func (v Value) Float64() (f float64, ok bool) {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.num), true
	case KindInt:
		if v.text == "" {
			return float64(int64(v.num)), true
		}
		f, err := strconv.ParseFloat(v.text, 64)
		return f, err == nil
	case KindDecimal:
		f, err := strconv.ParseFloat(v.text+"e"+strconv.Itoa(v.exponent()), 64)
		return f, err == nil
	}
	return 0, false
}

func (v Value) exponent() int { return int(int64(v.num)) }

// Char returns the value of a character. If v is of another kind, ok is false.
func (v Value) Char() (r rune, ok bool) { return rune(v.num), v.kind == KindChar }

// Text returns the text of a string, the name of a symbol or keyword (without its colon), or the tag of a tagged value. For any
// other kind, it returns "".
func (v Value) Text() string {
	switch v.kind {
	case KindString, KindSymbol, KindKeyword, KindTagged:
		return v.text
	}
	return ""
}

// Name returns the name of a keyword. In JSON, a name is a string that is a valid keyword with or without the leading colon. For
// all other values, including strings in EDN, ok is false.
func (v Value) Name() (name string, ok bool) {
	if v.kind == KindString && v.IsJSON() {
		name = strings.TrimPrefix(v.text, ":")
		return name, checkKeyword(name) == ""
	}
	return v.text, v.kind == KindKeyword
}

// Len returns the number of elements in a list, vector or set, or the number of entries in a map. For any other kind, it returns
// 0.
func (v Value) Len() int {
	switch v.kind {
	case KindList, KindVector, KindSet:
		return len(v.items())
	case KindMap:
		return len(v.items()) / 2
	}
	return 0
}

func (v Value) items() []Value {
	if v.more == nil {
		return nil
	}
	return v.more.items
}

// At returns element i of a list, vector or set, in the order of the text. If there is no such element, it returns the nil value.
func (v Value) At(i int) Value {
	if v.kind == KindMap || i < 0 || i >= v.Len() {
		return Value{}
	}
	return v.more.items[i]
}

// Elements returns an iterator over the elements of a list, vector or set in the order of the text. For any other kind, it yields
// nothing.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i := range v.Len() {
			if v.kind == KindMap || !yield(i, v.more.items[i]) {
				return
			}
		}
	}
}

// Entries returns an iterator over the keys and values of a map in the order of the text. For any other kind, it yields nothing.
func (v Value) Entries() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.kind != KindMap {
			return
		}
		for items := v.items(); len(items) > 0; items = items[2:] {
			if !yield(items[0], items[1]) {
				return
			}
		}
	}
}

// Tagged returns the tag of a tagged value, without #, and the value after it; ok is false for other kinds. For an inst or uuid
// the inner value is a string in normal form: an instant in UTC as in RFC 3339, or lower-case hexadecimal digits.
func (v Value) Tagged() (tag string, inner Value, ok bool) {
	if v.kind != KindTagged {
		return "", Value{}, false
	}
	return v.text, v.more.items[0], true
}

// Get returns the value for a key in a map, or the element of a set that equals the key; ok is false if there is none. It takes
// constant time.
func (v Value) Get(key Value) (found Value, ok bool) {
	return v.get(&key)
}

// get takes pointers because looking up fields takes most of the time when data is read.
func (v *Value) get(key *Value) (found Value, ok bool) {
	i := v.more.find(v.kind, key)
	if i < 0 {
		return Value{}, false
	}
	if v.kind == KindMap {
		i++
	}
	return v.more.items[i], true
}

// Field returns the value for a name in a map. In EDN, the name is a keyword; in JSON, it is a string without a leading colon or,
// if there is none, with one. The name is given without the colon. Callers must use [Value.Entries] to detect a JSON object that
// contains both spellings.
func (v Value) Field(name string) (found Value, ok bool) {
	if !v.IsJSON() {
		return v.get(&Value{kind: KindKeyword, text: name})
	}
	if found, ok = v.get(&Value{kind: KindString, text: name}); ok {
		return found, true
	}
	return v.get(&Value{kind: KindString, text: ":" + name})
}
