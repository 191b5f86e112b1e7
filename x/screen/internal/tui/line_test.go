package tui

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stonelayer/stone/internal/text"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"", 5, ""},
		{"hello", 5, "hello"},
		{"hello world", 5, "hello|world"},
		{"hello world", 6, "hello|world"},
		{"hello world", 11, "hello world"},
		{"a bc def", 4, "a bc|def"},
		{"abcdefgh", 3, "abc|def|gh"},
		{"a abcdefgh", 3, "a|abc|def|gh"},
		{"  in", 10, "  in"},
		{"a\n\nb\n", 10, "a||b|"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"漢", 1, "漢"},
		{"a\tb", 10, "a    b"},
		{"x\x1b[31my\x07\u202e\u009b", 20, "x�[31my���"},
		{"❤️ 👩\u200d💻", 10, "❤ 👩💻"},
	} {
		if got := strings.Join(wrap(c.s, c.width), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.s, c.width, got, c.want)
		}
	}
}

// TestWrapKeeps checks that no line is too wide, that only spaces are lost, and that
// no control sequence remains.
func TestWrapKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab  \n\t漢é́\x1b\x9b\u200d\u202e👩"))).Draw(t, "text")
		width := rapid.IntRange(2, 12).Draw(t, "width")
		lines := wrap(s, width)
		for _, l := range lines {
			if text.Width(l) > width {
				t.Errorf("%q is wider than %d", l, width)
			}
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("control characters in %q", l)
			}
		}
		letters := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got, want := letters(strings.Join(lines, "")), letters(strings.Join(printable(s), "")); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}
