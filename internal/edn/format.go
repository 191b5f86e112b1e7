package edn

import (
	"bytes"
	"unicode/utf8"
)

const (
	lineWidth = 80
	// mostIndent is the column after which lines are not broken, so that deeply nested data and long keys do not cause excessive
	// indents.
	mostIndent = 160
)

// Format returns human-readable text of the value, with line breaks. A value that fits into 80 columns, or begins beyond column
// 160, is written on one line; otherwise each element or entry is written on a line of its own. The order is the same as in
// [Value.String]. The text ends with a line break.
func Format(v Value) []byte {
	return append(format(nil, v, 0), '\n')
}

// format appends a value that begins at the given column.
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

// atLeast returns a lower bound on the length of a value's text. It stops counting when the bound exceeds most. This keeps the
// time of [Format] linear, because it does not write values only to find that they are much too long.
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

// ReadEither reads one value from a text that is EDN or JSON. A text that begins like a JSON object, with a string and a colon
// (`{"a":`), possibly inside arrays, is read as JSON. Any other text is read as EDN. This works for all other JSON values too,
// except that their strings are then not names. Errors are of type [*Error] and refer to the detected notation.
func ReadEither(data []byte, limits Limits) (Value, error) {
	if beginsAsJSON(data) {
		return FromJSON(data, limits)
	}
	return Read(data, limits)
}

// beginsAsJSON examines only the text up to the first key. In EDN, names are not strings, so a string followed by a colon must be
// JSON.
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
