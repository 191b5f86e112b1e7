package suggest

import (
	"fmt"
	"iter"
	"strings"
)

// Nearest returns the candidate that has the most bytes at both ends in common with text, because long texts usually differ in
// one place. It also returns the difference between the two, with some surrounding text. If several candidates are equally near,
// it returns the smallest. It returns "" if there are no candidates.
func Nearest(text string, candidates iter.Seq[string]) (nearest, differs string) {
	best, front, back := -1, 0, 0
	for c := range candidates {
		f, b := common(text, c)
		if f+b > best || f+b == best && c < nearest {
			best, nearest, front, back = f+b, c, f, b
		}
	}
	if best < 0 {
		return "", ""
	}
	return nearest, fmt.Sprintf("at byte %d: got %s, recorded %s", front, around(text, front, back), around(nearest, front, back))
}

// common returns the number of bytes that two texts have in common at the front and at the back.
func common(a, b string) (front, back int) {
	n := min(len(a), len(b))
	for front < n && a[front] == b[front] {
		front++
	}
	for back < n-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return front, back
}

// around quotes the part of s that differs, with some surrounding text.
func around(s string, front, back int) string {
	const limit = 200
	part := s[max(0, front-20):min(len(s), len(s)-back+10)]
	if len(part) > limit {
		part = part[:limit] + " …"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(part, ""))
}
