package schema

import (
	"encoding/json"
	"unicode/utf8"
)

// quick reads common JSON several times as fast as the decoder, which reads everything else and
// reports errors.
type quick struct {
	data []byte
	i    int
}

// quickDepth bounds the nesting that quick reads.
const quickDepth = 64

// decodeQuick returns the decoder's result, or false if the decoder is needed.
func decodeQuick(data []byte) (v any, ok bool) {
	q := quick{data: data}
	if v, ok = q.value(quickDepth); !ok {
		return nil, false
	}
	q.space()
	return v, q.i == len(data)
}

func (q *quick) space() {
	for q.i < len(q.data) {
		switch q.data[q.i] {
		case ' ', '\t', '\r', '\n':
			q.i++
		default:
			return
		}
	}
}

// next skips space and, if c follows, consumes it and returns true.
func (q *quick) next(c byte) bool {
	q.space()
	if q.i < len(q.data) && q.data[q.i] == c {
		q.i++
		return true
	}
	return false
}

func (q *quick) value(depth int) (any, bool) {
	q.space()
	if q.i == len(q.data) || depth == 0 {
		return nil, false
	}
	switch q.data[q.i] {
	case '"':
		return q.text()
	case '{':
		return q.object(depth - 1)
	case '[':
		return q.array(depth - 1)
	case 't':
		return true, q.word("true")
	case 'f':
		return false, q.word("false")
	case 'n':
		return nil, q.word("null")
	}
	return q.number()
}

func (q *quick) word(w string) bool {
	if len(q.data)-q.i < len(w) || string(q.data[q.i:q.i+len(w)]) != w {
		return false
	}
	q.i += len(w)
	return true
}

// text reads a string without escapes.
func (q *quick) text() (any, bool) {
	s, ok := q.plain()
	return s, ok
}

func (q *quick) plain() (string, bool) {
	if !q.next('"') {
		return "", false
	}
	start, ascii := q.i, true
	for ; q.i < len(q.data); q.i++ {
		switch c := q.data[q.i]; {
		case c == '"':
			s := q.data[start:q.i]
			q.i++
			return string(s), ascii || utf8.Valid(s)
		case c == '\\' || c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// number reads a number without an exponent.
func (q *quick) number() (any, bool) {
	start := q.i
	if q.data[q.i] == '-' {
		q.i++
	}
	whole := q.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return nil, false
	}
	if q.i < len(q.data) && q.data[q.i] == '.' {
		q.i++
		if len(q.digits()) == 0 {
			return nil, false
		}
	}
	if q.i < len(q.data) && (q.data[q.i] == 'e' || q.data[q.i] == 'E') {
		return nil, false
	}
	return json.Number(q.data[start:q.i]), true
}

func (q *quick) digits() []byte {
	start := q.i
	for q.i < len(q.data) && '0' <= q.data[q.i] && q.data[q.i] <= '9' {
		q.i++
	}
	return q.data[start:q.i]
}

func (q *quick) object(depth int) (any, bool) {
	q.i++
	m := map[string]any{}
	if q.next('}') {
		return m, true
	}
	for {
		q.space()
		key, ok := q.plain()
		if !ok || !q.next(':') {
			return nil, false
		}
		if m[key], ok = q.value(depth); !ok {
			return nil, false
		}
		if !q.next(',') {
			return m, q.next('}')
		}
	}
}

func (q *quick) array(depth int) (any, bool) {
	q.i++
	list := []any{}
	if q.next(']') {
		return list, true
	}
	for {
		v, ok := q.value(depth)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if !q.next(',') {
			return list, q.next(']')
		}
	}
}
