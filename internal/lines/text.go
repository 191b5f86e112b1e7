package lines

import (
	"strconv"
	"strings"
	"unicode"
)

// Cut returns s if it has at most n characters, and otherwise its first n characters followed by "…".
func Cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// Printable returns s with all characters escaped that would break the line or control the terminal.
func Printable(s string) string {
	clean := func(r rune) bool { return r != unicode.ReplacementChar && strconv.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if clean(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Preview returns the first n characters of s as one printable line, in which each run of white space is replaced by a single
// space.
func Preview(s string, n int) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		if b.Len() > n*4 { // this many bytes are enough for n characters
			break
		}
	}
	return Printable(Cut(b.String(), n))
}
