package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b c", "a b c", " a b c"},
		{"a b c d", "a x c y d", " a-b+x c+y d"},
		{"a b", "b a", "-a b+a"},
		{"", "a", "+a"},
		{"a", "", "-a"},
	} {
		var got strings.Builder
		for _, e := range Diff(strings.Fields(tt.a), strings.Fields(tt.b)) {
			got.WriteString(string(e.Sign) + e.Line)
		}
		if got.String() != tt.want {
			t.Errorf("%q to %q: %q, want %q", tt.a, tt.b, got.String(), tt.want)
		}
	}
}

// A difference has all lines of both texts in order, also of texts beyond maxCells.
func TestDiffIsComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 40, 1500} {
		lines := func() (out []string) {
			for range n {
				out = append(out, string('a'+rune(r.IntN(5))))
			}
			return out
		}
		a, b := lines(), lines()
		var first, second []string
		for _, e := range Diff(a, b) {
			if e.Sign != '+' {
				first = append(first, e.Line)
			}
			if e.Sign != '-' {
				second = append(second, e.Line)
			}
		}
		if !slices.Equal(first, a) || !slices.Equal(second, b) {
			t.Errorf("%d lines: the difference is not that of the texts", n)
		}
	}
}
