package edn

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// FromJSON returns the only value in a JSON text. Objects become maps with string keys, arrays become vectors, and null becomes
// nil. A number without point and exponent becomes an integer. Any other number becomes a float if a float64 represents all its
// digits exactly, and otherwise a decimal, so no number is rounded. Duplicate keys are refused. Errors are of type [*Error].
func FromJSON(data []byte, limits Limits) (Value, error) {
	s, err := newSource(data, limits)
	if err != nil {
		return Value{}, err
	}
	s.json = true
	// Duplicate names are allowed here because unique reports them with both positions.
	tokens := jsonv2.NewDecoder(bytes.NewBuffer(data), jsonv2.AllowDuplicateNames(true))
	r := jsonReader{source: s, most: limits.depth(), tokens: tokens}
	v, err := r.value()
	if err != nil {
		return Value{}, err
	}
	if rest := strings.TrimLeft(s.text[r.tokens.InputOffset():], " \t\r\n"); rest != "" {
		return Value{}, r.errorf(len(s.text)-len(rest), "expected the end of the text after its one value")
	}
	return v, nil
}

type jsonReader struct {
	*source
	builder
	tokens *jsonv2.Decoder
	depth  int
	most   int
}

func (r *jsonReader) value() (Value, error) {
	switch kind := r.tokens.PeekKind(); kind {
	case '{', '[':
		return r.collection(kind)
	}
	raw, err := r.tokens.ReadValue()
	if err != nil {
		return Value{}, r.fault(err)
	}
	start := int(r.tokens.InputOffset()) - len(raw)
	v, reason := r.scalar(raw, start)
	if reason != "" {
		return Value{}, r.errorf(start, "number %s: %s", quote(string(raw)), reason)
	}
	v.source, v.offset = r.source, uint32(start)
	return v, nil
}

// scalar converts a JSON value that is neither an array nor an object.
func (r *jsonReader) scalar(raw jsonv2.Value, start int) (v Value, reason string) {
	switch raw.Kind() {
	case 'n':
		return Value{}, ""
	case 't', 'f':
		return Bool(raw.Kind() == 't'), ""
	case '"':
		if bytes.IndexByte(raw, '\\') < 0 {
			return Value{kind: KindString, text: r.text[start+1 : start+len(raw)-1]}, ""
		}
		// The decoder has already checked the string.
		text, _ := jsonv2.AppendUnquote(nil, raw)
		return Value{kind: KindString, text: string(text)}, ""
	}
	return jsonNumber(r.text[start : start+len(raw)])
}

// jsonNumber converts a JSON number to a value of the kind that represents it exactly.
func jsonNumber(text string) (v Value, reason string) {
	if !strings.ContainsAny(text, ".eE") {
		return parseNumber(text)
	}
	exact, reason := parseNumber(text + "M")
	if reason != "" {
		return Value{}, reason
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return exact, ""
	}
	written, _ := parseNumber(strconv.FormatFloat(f, 'g', -1, 64) + "M")
	if !exact.Equal(written) {
		return exact, ""
	}
	return Float(f), ""
}

// collection reads an array or object.
func (r *jsonReader) collection(opening jsonv2.Kind) (Value, error) {
	if _, err := r.tokens.ReadToken(); err != nil {
		return Value{}, r.fault(err)
	}
	start := int(r.tokens.InputOffset()) - 1
	if r.depth++; r.depth > r.most {
		return Value{}, r.errorf(start, "expected values nested at most %d deep", r.most)
	}
	base := len(r.stack)
	for r.tokens.PeekKind() != ']' && r.tokens.PeekKind() != '}' {
		v, err := r.value()
		if err != nil {
			return Value{}, err
		}
		r.stack = append(r.stack, v)
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return Value{}, r.fault(err)
	}
	r.depth--
	v := Value{kind: KindVector, more: r.take(base)}
	if opening == '{' {
		v.kind = KindMap
		if _, err := unique(v); err != nil {
			return Value{}, err
		}
	}
	v.source, v.offset = r.source, uint32(start)
	return v, nil
}

// fault returns an *Error for an error from the decoder.
func (r *jsonReader) fault(err error) error {
	if syntactic := (*jsonv2.SyntacticError)(nil); errors.As(err, &syntactic) {
		offset := min(int(syntactic.ByteOffset), len(r.text))
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return r.errorf(len(r.text), "expected more JSON, found the end of the text")
		}
		return r.errorf(offset, "expected JSON: %v", syntactic.Err)
	}
	return r.errorf(len(r.text), "expected a value, found the end of the text")
}

// ToJSON returns the value as JSON on one line. The text is always the same for the same value. Keywords, symbols and characters
// become strings, lists and sets become arrays, and an inst or uuid becomes its string. The keys of maps become names, which must
// be unique. For a value without a JSON form (any other key or tag, NaN or an infinity) it returns an [*Error] with the value's
// position.
func ToJSON(v Value) ([]byte, error) { return appendJSON(nil, v) }

func appendJSON(dst []byte, v Value) ([]byte, error) {
	switch v.kind {
	case KindNil:
		return append(dst, "null"...), nil
	case KindBool:
		return v.appendScalar(dst), nil
	case KindInt:
		return appendInt(dst, v, ""), nil
	case KindDecimal:
		start := len(dst)
		if dst = appendDecimal(dst, v); v.IsJSON() && !bytes.ContainsAny(dst[start:], ".eE") {
			dst = append(dst, ".0"...) // without a point, the number would be read as an integer
		}
		return dst, nil
	case KindFloat:
		f, _ := v.Float64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, v.Errorf("expected a number that JSON can represent, found %s", v)
		}
		return appendFloat(dst, f), nil
	case KindChar:
		return appendJSONString(dst, string(rune(v.num))), nil
	case KindString, KindSymbol, KindKeyword:
		return appendJSONString(dst, v.text), nil
	case KindMap:
		return appendObject(dst, v)
	case KindSet:
		return appendArray(dst, v.sorted())
	case KindTagged:
		if v.text == "inst" || v.text == "uuid" {
			return appendJSON(dst, v.more.items[0])
		}
		return nil, v.Errorf("expected a value that JSON can represent, found the tag #%s", clip(v.text))
	}
	return appendArray(dst, v.items())
}

func appendArray(dst []byte, items []Value) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(dst, item); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, v Value) (_ []byte, err error) {
	items := v.items()
	order := make([]int, 0, v.Len()) // positions of keys in items, in the order in which they are written
	for i := 0; i < len(items); i += 2 {
		key := items[i]
		if key.kind != KindString && key.kind != KindSymbol && key.kind != KindKeyword {
			return nil, key.Errorf("expected a string, keyword or symbol as a key in JSON, found %s", key.brief())
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return strings.Compare(items[i].text, items[j].text) })
	dst = append(dst, '{')
	for i, at := range order {
		key := items[at]
		if i > 0 {
			if last := items[order[i-1]]; last.text == key.text {
				return nil, key.Errorf("expected keys that differ in JSON, found %s and %s", last.brief(), key.brief())
			}
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, key.text), ':')
		if dst, err = appendJSON(dst, items[at+1]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendJSONString(dst []byte, s string) []byte {
	// AppendQuote fails only for invalid UTF-8, which no value contains.
	dst, _ = jsonv2.AppendQuote(dst, s)
	return dst
}
