package edn

import (
	"bytes"
	"unicode/utf8"
)

const (
	lineWidth = 80
	// mostIndent is the column after which lines are not broken, so that deep data and long keys do not cause endless indents.
	mostIndent = 160
)

// Format returns the text of the value with line breaks, for people. A value that fits
// into 80 columns, or begins beyond column 160, is on one line; otherwise each element or
// entry has its own. The order is as in [Value.String]. The text ends with a line
// break.
func Format(v Value) []byte {
	return append(format(nil, v, 0), '\n')
}

// format appends a value that begins at a column.
func format(dst []byte, v Value, column int) []byte {
	if v.more == nil || column > mostIndent {
		return v.Append(dst)
	}
	if room := lineWidth - column; atLeast(v, room) <= room {
		if flat := v.Append(dst); len(flat)-len(dst) <= room {
			return flat
		}
	}
	switch v.kind {
	case KindList:
		return formatItems(dst, "(", v.items(), ")", column)
	case KindVector:
		return formatItems(dst, "[", v.items(), "]", column)
	case KindSet:
		return formatItems(dst, "#{", v.sorted(), "}", column)
	case KindMap:
		return formatEntries(dst, v, column)
	}
	dst = append(append(append(dst, '#'), v.text...), ' ')
	return format(dst, v.more.items[0], column+utf8.RuneCountInString(v.text)+2)
}

func formatItems(dst []byte, opening string, items []Value, closing string, column int) []byte {
	column += len(opening)
	for i, item := range items {
		if i == 0 {
			dst = append(dst, opening...)
		} else {
			dst = newLine(dst, column)
		}
		dst = format(dst, item, column)
	}
	return append(dst, closing...)
}

func formatEntries(dst []byte, v Value, column int) []byte {
	dst = append(dst, '{')
	column++
	items := v.sorted()
	for i := 0; i < len(items); i += 2 {
		if i > 0 {
			dst = newLine(dst, column)
		}
		start := len(dst)
		dst = append(format(dst, items[i], column), ' ')
		after := column + utf8.RuneCount(dst[start:])
		if at := bytes.LastIndexByte(dst[start:], '\n'); at >= 0 {
			after = utf8.RuneCount(dst[start+at+1:])
		}
		dst = format(dst, items[i+1], after)
	}
	return append(dst, '}')
}

func newLine(dst []byte, column int) []byte {
	dst = append(dst, '\n')
	for range column {
		dst = append(dst, ' ')
	}
	return dst
}

// atLeast returns a lower bound on the length of a value's text, and stops counting when it is above most. It keeps [Format]
// linear in time: no value is written only to find that it is much too long.
func atLeast(v Value, most int) int {
	length := 1 + len(v.text)
	for _, item := range v.items() {
		if length > most {
			break
		}
		length += 1 + atLeast(item, most-length)
	}
	return length
}

// ReadEither reads one value from a text that is EDN or JSON. A text that begins like an
// object of JSON, with a string and a colon (`{"a":`), within any number of arrays, is
// read as JSON. Any other text is read as EDN, which also covers the other values of
// JSON, except that their strings are not names. Errors are of type [*Error] and refer to
// the chosen notation.
func ReadEither(data []byte, limits Limits) (Value, error) {
	if beginsAsJSON(data) {
		return FromJSON(data, limits)
	}
	return Read(data, limits)
}

// beginsAsJSON examines at most the first key. In EDN, a map of names has no strings for
// keys, so a string and a colon are proof.
func beginsAsJSON(text []byte) bool {
	const white = " \t\r\n"
	text, ok := bytes.CutPrefix(bytes.TrimLeft(text, white+"["), []byte("{"))
	if !ok {
		return false
	}
	text, ok = bytes.CutPrefix(bytes.TrimLeft(text, white), []byte(`"`))
	if !ok {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return bytes.HasPrefix(bytes.TrimLeft(text[i+1:], white), []byte(":"))
		}
	}
	return false
}
