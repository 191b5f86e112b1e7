package edn

import (
	"strings"
	"unicode"
)

// String returns the canonical text of the value, on one line.
func (v Value) String() string { return string(v.Append(nil)) }

// Append appends the canonical text of the value, on one line. The text of a value is always the same, and reading it yields an
// equal value.
func (v Value) Append(dst []byte) []byte {
	switch v.kind {
	case KindList:
		return appendAll(dst, "(", v.items(), ")")
	case KindVector:
		return appendAll(dst, "[", v.items(), "]")
	case KindSet:
		return appendAll(dst, "#{", v.sorted(), "}")
	case KindMap:
		dst = append(dst, '{')
		for i, item := range v.sorted() {
			if i > 0 && i%2 == 0 {
				dst = append(dst, ", "...)
			} else if i > 0 {
				dst = append(dst, ' ')
			}
			dst = item.Append(dst)
		}
		return append(dst, '}')
	case KindTagged:
		dst = append(append(append(dst, '#'), v.text...), ' ')
		return v.more.items[0].Append(dst)
	}
	return v.appendScalar(dst)
}

func appendAll(dst []byte, opening string, items []Value, closing string) []byte {
	dst = append(dst, opening...)
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = item.Append(dst)
	}
	return append(dst, closing...)
}

func (v Value) appendScalar(dst []byte) []byte {
	switch v.kind {
	case KindBool:
		if v.num == 1 {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case KindInt:
		return appendInt(dst, v, "N")
	case KindFloat:
		f, _ := v.Float64()
		return appendFloat(dst, f)
	case KindDecimal:
		return append(appendDecimal(dst, v), 'M')
	case KindChar:
		return appendChar(dst, rune(v.num))
	case KindString:
		return appendString(dst, v.text)
	case KindSymbol:
		return append(dst, v.text...)
	case KindKeyword:
		return append(append(dst, ':'), v.text...)
	}
	return append(dst, "nil"...)
}

func appendChar(dst []byte, char rune) []byte {
	dst = append(dst, '\\')
	for _, n := range charNames {
		if n.char == char {
			return append(dst, n.name...)
		}
	}
	if char <= 0xFFFF && !unicode.IsPrint(char) {
		return appendHex(dst, char)
	}
	return append(dst, string(char)...)
}

// appendHex writes uXXXX.
func appendHex(dst []byte, char rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, 'u', hex[char>>12&15], hex[char>>8&15], hex[char>>4&15], hex[char&15])
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7F {
			continue
		}
		dst = append(append(dst, s[done:i]...), '\\')
		done = i + 1
		if short := strings.IndexByte("\t\n\r\b\f\\\"", c); short >= 0 {
			dst = append(dst, `tnrbf\"`[short])
		} else {
			dst = appendHex(dst, rune(c))
		}
	}
	return append(append(dst, s[done:]...), '"')
}
