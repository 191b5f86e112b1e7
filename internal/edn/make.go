package edn

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/bounds"
)

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, num: 1}
	}
	return Value{kind: KindBool}
}

// Int returns an integer.
func Int(n int64) Value { return Value{kind: KindInt, num: uint64(n)} }

// Float returns a Value of kind KindFloat. All NaNs become the same NaN.
func Float(f float64) Value {
	if math.IsNaN(f) {
		f = math.NaN()
	}
	return Value{kind: KindFloat, num: math.Float64bits(f)}
}

// Char returns a character as a Value. An invalid rune becomes U+FFFD.
func Char(r rune) Value {
	if !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return Value{kind: KindChar, num: uint64(r)}
}

// String returns a string as a Value. Bytes that are not UTF-8 become U+FFFD.
func String(s string) Value {
	return Value{kind: KindString, text: strings.ToValidUTF8(s, "\uFFFD")}
}

// Keyword returns the keyword with the given name, which must not start with a colon. If the name is invalid, the error explains
// why.
func Keyword(name string) (Value, error) {
	if reason := checkKeyword(name); reason != "" {
		return Value{}, &Error{Reason: fmt.Sprintf("keyword %s: %s", quote(":"+name), reason)}
	}
	return Value{kind: KindKeyword, text: name}, nil
}

// Vector returns a vector with the given items. It keeps the slice, which the caller must not modify afterwards.
func Vector(items ...Value) Value { return Value{kind: KindVector, more: hold(items)} }

// Map returns a map. Its arguments alternate between keys and values. It keeps the slice, which the caller must not modify
// afterwards. If a key occurs twice, Map returns an [*Error] with the position of the second occurrence.
func Map(keysAndValues ...Value) (Value, error) {
	if len(keysAndValues)%2 != 0 {
		return Value{}, noValue(keysAndValues)
	}
	return unique(Value{kind: KindMap, more: hold(keysAndValues)})
}

// Tagged returns the given value with a tag, which must not start with #. If the tag, or the value of an inst or uuid, is
// invalid, the error explains why.
func Tagged(tag string, inner Value) (Value, error) {
	if reason := checkTag(tag); reason != "" {
		return Value{}, &Error{Reason: fmt.Sprintf("tag %s: %s", quote("#"+tag), reason)}
	}
	normal, reason := inner, ""
	switch tag {
	case "inst":
		normal.text, reason = normalInst(inner)
	case "uuid":
		normal.text, reason = normalUUID(inner)
	}
	if reason != "" {
		return Value{}, inner.Errorf("#%s: %s, found %s", tag, reason, inner.brief())
	}
	return Value{kind: KindTagged, text: tag, more: hold([]Value{normal})}, nil
}

// noValue returns the error for a map whose last key has no value.
func noValue(items []Value) error {
	last := items[len(items)-1]
	return last.Errorf("expected a value for the key %s", last.brief())
}

// hold returns a collection with the given items. If there are none, it returns nil, so that empty collections need no memory.
func hold(items []Value) *collection {
	if len(items) == 0 {
		return nil
	}
	return &collection{items: items, depth: depthOf(items)}
}

func depthOf(items []Value) (deepest int) {
	for i := range items {
		if inner := items[i].more; inner != nil {
			deepest = max(deepest, inner.depth)
		}
	}
	return deepest + 1
}

// maxKeyDepth is the maximum nesting of map keys and set elements. It is limited because their texts are built again at each
// level.
const maxKeyDepth = 64

// unique builds the index of a map or set. It returns an error for duplicate and for deeply nested keys.
func unique(v Value) (Value, error) {
	items, step := v.items(), stride(v.kind)
	for i := 0; i < len(items); i += step {
		if key := &items[i]; key.more != nil && key.more.depth > maxKeyDepth {
			return Value{}, key.Errorf("expected values nested at most %d deep in a %s", maxKeyDepth, v.kind)
		}
	}
	if first, second := v.more.buildIndex(v.kind); second > 0 {
		key, what := v.more.items[second], "element"
		if v.kind == KindMap {
			what = "key"
		}
		where := ""
		if line, column := v.more.items[first].Position(); line > 0 {
			where = fmt.Sprintf(", first at %d:%d", line, column)
		}
		return Value{}, key.Errorf("duplicate %s %s in a %s%s", what, key.brief(), v.kind, where)
	}
	return v, nil
}

const instForm = "expected a string like \"2006-01-02T15:04:05.999Z\" (RFC 3339)"

// normalInst returns an instant in UTC, so that equal instants have equal text.
func normalInst(v Value) (normal, reason string) {
	s := v.text
	// time.Parse also accepts a comma, one-digit hours, and more digits than a time.Time can store. RFC 3339 does not allow the
	// first two, and the third would lose digits.
	if v.kind != KindString || len(s) < len("2006-01-02T15:04:05Z") || s[10] != 'T' || s[13] != ':' || strings.Contains(s, ",") {
		return s, instForm
	}
	zone := strings.IndexAny(s[19:], "Z+-")
	if zone > len(".999999999") {
		return s, "expected at most nine digits of a second"
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !validOffset(s[19+max(zone, 0):]) {
		return s, instForm
	}
	at = at.UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return s, "expected a year from 0000 to 9999 in UTC"
	}
	return at.Format(time.RFC3339Nano), ""
}

// validOffset reports whether the hours and minutes of ±hh:mm are in range.
func validOffset(zone string) bool {
	if zone == "Z" {
		return true
	}
	return len(zone) == len("+00:00") && zone[1:3] <= "23" && zone[4:] <= "59"
}

func normalUUID(v Value) (normal, reason string) {
	const form = "expected a string like \"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\""
	if v.kind != KindString || len(v.text) != 36 {
		return v.text, form
	}
	for i := range len(v.text) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen && v.text[i] != '-' || !hyphen && !isHex(v.text[i]) {
			return v.text, form
		}
	}
	return strings.ToLower(v.text), ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// brief returns a short description of a value for a message: its text if that is short, and otherwise the beginning of the text
// or its kind.
func (v Value) brief() string {
	switch v.kind {
	case KindList, KindVector, KindMap, KindSet, KindTagged:
		if atLeast(v, 40) >= 40 {
			return "this " + v.kind.String()
		}
	case KindString:
		return quote(v.text)
	}
	return show(v.String())
}

// quote returns part of a text, shortened and quoted, for a message.
func quote(s string) string { return strconv.Quote(clip(s)) }

// show is like quote, but omits the quotes unless the text contains characters that could control a terminal.
func show(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return quote(s)
	}
	return clip(s)
}

// clip returns part of a text, shortened if it is long.
func clip(s string) string { return bounds.Cut(s, 40) }

// builder collects the items of collections while they are read. Most collections are small, so they are allocated from larger
// pieces of memory, whose size grows up to largestPiece.
type builder struct {
	stack       []Value // the items read so far in all open collections
	items       []Value // the unused rest of a piece
	collections []collection
	piece       int
}

const largestPiece = 1024

// take removes the items above base from the stack and returns them as a collection.
func (b *builder) take(base int) *collection {
	taken := b.stack[base:]
	b.stack = b.stack[:base]
	if len(taken) == 0 {
		return nil
	}
	if len(b.collections) == 0 {
		b.piece = min(max(2*b.piece, 8), largestPiece)
		b.collections = make([]collection, b.piece/4)
	}
	c := &b.collections[0]
	b.collections = b.collections[1:]
	c.items = b.room(len(taken))
	copy(c.items, taken)
	c.depth = depthOf(taken)
	return c
}

// room returns a slice of n items for exclusive use by the caller.
func (b *builder) room(n int) []Value {
	if n > b.piece/4 { // allocated separately, so that little memory is wasted
		return make([]Value, n)
	}
	if len(b.items) < n {
		b.items = make([]Value, b.piece)
	}
	room := b.items[:n:n]
	b.items = b.items[n:]
	return room
}
