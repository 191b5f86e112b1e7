// Package text makes arbitrary strings, such as names and reasons, fit onto the lines of a terminal.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Line returns s as one printable line: white space at both ends is removed, and each line break or tab becomes a space.
func Line(s string) string {
	return printable(strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")))
}

// Lines returns the printable lines of s with their indents. A tab becomes four spaces. Empty lines at the beginning and end are
// removed.
func Lines(s string) []string {
	lines := strings.Split(strings.Trim(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(strings.TrimRight(line, " \t"), "\t", "    "))
	}
	return lines
}

// A Writer writes text to a terminal. It replaces control characters (except line breaks and tabs), and characters that hide or
// reorder text, with U+FFFD. A character may be split across two writes.
type Writer struct {
	W    io.Writer
	part []byte // beginning of an incomplete character
}

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				end = len(text) - i
			}
			break
		}
	}
	w.part = append([]byte(nil), text[end:]...)
	shown := strings.Map(func(r rune) rune {
		if r == '\r' { // a carriage return would let the following text overwrite the line
			return -1
		}
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || hidden(r)) {
			return utf8.RuneError
		}
		return r
	}, string(text[:end]))
	if _, err := io.WriteString(w.W, shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printable replaces white space with spaces, and other control characters, which could control a terminal, with U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || hidden(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// hidden reports whether r is invisible or changes the direction of text, so that text looks different from what it is. The
// joiners for scripts and emoji (U+200C and U+200D) do not count as hidden, because words in some languages would be wrong
// without them.
func hidden(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u200b' || r >= '\u2060' && r <= '\u2064' || r >= '\u206a' && r <= '\u206f' ||
		r == '\ufeff' || r >= '\ufff9' && r <= '\ufffb' || r >= 0xe0000 && r <= 0xe007f
}

// Width returns the number of terminal columns that s takes. The string must be one line without control characters.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// Cut shortens s to at most n columns. A shortened text ends with "…".
func Cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += columns(r); used > n-1 {
			if n < 1 {
				return ""
			}
			return s[:i] + "…"
		}
	}
	return s
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

const (
	base64     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
	longBase64 = 512 // maximum length of base64 that is shown to people
)

// WithoutBase64 returns JSON for people: it replaces long base64, such as a picture, with a note about its size.
func WithoutBase64(json string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(json, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for ; end < len(json) && json[end] != '"'; end++ {
			if json[end] == '\\' {
				end++
			}
		}
		body := json[min(start+1, len(json)):min(end, len(json))]
		if len(body) >= longBase64 && strings.Trim(body, base64) == "" {
			fmt.Fprintf(&b, "%s[%d KB in base64]", json[:start+1], (len(body)*3/4+500)/1000)
		} else {
			b.WriteString(json[:min(end, len(json))])
		}
		if end >= len(json) {
			return b.String()
		}
		b.WriteByte('"')
		json = json[end+1:]
	}
	b.WriteString(json)
	return b.String()
}

// Process returns a readable name for the owner of a run, which a journal stores as "host/pid/nonce".
func Process(owner string) string {
	if parts := strings.Split(owner, "/"); len(parts) == 3 {
		return "process " + parts[1] + " on " + parts[0]
	}
	return owner
}

// Plural returns a number of things, such as "1 step", "2 steps" or "3 capabilities".
func Plural(n int, one string) string { return strconv.Itoa(n) + " " + Plurals(n, one) }

// Plurals returns the singular or plural of a noun, for n things.
func Plurals(n int, one string) string {
	if n == 1 {
		return one
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		one = stem + "ie"
	}
	return one + "s"
}

// Fold breaks a line into lines of at most the given width. It breaks between words, and within words that are longer than a line.
func Fold(s string, width int) (lines []string) {
	column, begin, space := 0, 0, 0 // space is the offset after the last space
	for i, r := range s {
		w := columns(r)
		for column+w > width && i > begin {
			at := i
			if r != ' ' && space > begin && strings.TrimSpace(s[begin:space]) != "" {
				at = space
			}
			lines = append(lines, strings.TrimRight(s[begin:at], " "))
			begin, column = at, Width(s[at:i])
		}
		if r == ' ' {
			space = i + 1
			if i == begin && begin > 0 { // the space where the line was broken
				begin = space
				continue
			}
		}
		column += w
	}
	return append(lines, s[begin:])
}

// JSON formats JSON for people: a string is returned without quotes, and anything else is indented. Numbers keep all their digits.
// Text that is not JSON is returned unchanged.
func JSON(content string) string {
	var words string
	if json.Unmarshal([]byte(content), &words) == nil {
		return words
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(content), "", "  ") != nil {
		return content
	}
	return out.String()
}

// Content formats JSON content on one line of at most n columns. For an object with a single member, it formats only the value.
func Content(content []byte, n int) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(content, &members) == nil && len(members) == 1 {
		for _, only := range members {
			content = only
		}
	}
	return Cut(Line(JSON(string(content))), n)
}

// Amount formats a number with about three digits. It returns "" for zero.
func Amount(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 10_000:
		return strconv.Itoa(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}
