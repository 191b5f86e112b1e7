package edn

import "bytes"

const (
	lineWidth = 80
	// keyWidth is how far to the right a value may begin after its key. Beyond
	// it the value goes on a line of its own, so that long keys in deep data do
	// not make indents without end.
	keyWidth = 48
)

// Format returns the text of the value with line breaks, for people: what fits
// into 80 columns stands on one line, else each element or entry has its own.
// The order is that of [Value.String]. The text ends with a line break.
func Format(v Value) []byte {
	return append(format(nil, v, 0), '\n')
}

// format appends a value that begins at a column.
func format(dst []byte, v Value, column int) []byte {
	if room := lineWidth - column; v.kind < KindList || v.more == nil || atLeast(v, room) <= room {
		start := len(dst)
		if dst = v.Append(dst); v.kind < KindList || v.more == nil || len(dst)-start <= room {
			return dst
		}
		dst = dst[:start]
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
	return formatAfter(dst, v.more.items[0], column, column+len(v.text)+2)
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
		lastLine := dst[start:]
		after := column + len(lastLine)
		if at := bytes.LastIndexByte(lastLine, '\n'); at >= 0 {
			after = len(lastLine) - at - 1
		}
		dst = formatAfter(dst, items[i+1], column, after)
	}
	return append(dst, '}')
}

// formatAfter appends a value after its key or tag and a space, in the same
// line when it begins early enough or is short.
func formatAfter(dst []byte, v Value, column, after int) []byte {
	if after-column <= keyWidth || v.kind < KindList || v.more == nil {
		return format(dst, v, after)
	}
	return format(newLine(dst[:len(dst)-1], column+1), v, column+1)
}

func newLine(dst []byte, column int) []byte {
	dst = append(dst, '\n')
	for range column {
		dst = append(dst, ' ')
	}
	return dst
}

// atLeast returns a lower bound of the length of a value's text, and stops to
// count when it is above most. It keeps the time that [Format] takes linear: no
// value is written to find out that it is much too long.
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
