package fs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	numbers := func(skip int) string {
		var b strings.Builder
		for i := range 30 {
			if i != skip {
				fmt.Fprintln(&b, i)
			}
		}
		return b.String()
	}
	for _, tt := range []struct{ old, new, want string }{
		{"a\n", "a\n", "no change to f"},
		{"", "a\n", "change f:\n@@ line 1\n+a"},
		{"a\n", "", "change f:\n@@ line 1\n-a"},
		{"a\nb\nc\n", "a\nB\nc\n", "change f:\n@@ line 1\n a\n-b\n+B\n c"},
		{"a", "a\n", "change f:\n@@ line 1\n-a [no newline at the end]\n+a"},
		{"a\n", "a\r\n", "change f:\n@@ line 1\n-a\n+a\\r"},
		{"a\xff", "b", "replace f, which is not text: 2 bytes become 1"},
		{numbers(10), numbers(20), "change f:\n@@ line 8\n 7\n 8\n 9\n+10\n 11\n 12\n 13\n@@ line 17\n 17\n 18\n 19\n-20\n 21\n 22\n 23"},
	} {
		if got := difference("f", []byte(tt.old), []byte(tt.new)); got != tt.want {
			t.Errorf("%q to %q:\n%s\nwant\n%s", tt.old, tt.new, got, tt.want)
		}
	}
}

// TestDifferenceIsWhole checks that the removed lines of a difference are in the old text,
// the added ones in the new text, and that the rest of both is the same.
func TestDifferenceIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			fmt.Fprintln(&b, r.IntN(5))
		}
		return b.String()
	}
	for i := range 500 {
		n := 30
		if i%100 == 0 {
			n = 3000 // more than maxCells
		}
		a, b := text(n), text(n)
		removed, added := map[string]int{}, map[string]int{}
		for _, l := range strings.Split(difference("f", []byte(a), []byte(b)), "\n")[1:] {
			switch l[0] {
			case '-':
				removed[l[1:]]++
			case '+':
				added[l[1:]]++
			}
		}
		for d := range 5 {
			line := fmt.Sprint(d)
			was, is := strings.Count(a, line+"\n"), strings.Count(b, line+"\n")
			if a != b && was-removed[line] != is-added[line] {
				t.Fatalf("%q to %q: %d lines %s remain of %d, %d are added to make %d", a, b, was-removed[line], line, was, added[line], is)
			}
		}
	}
}
