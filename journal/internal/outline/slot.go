package outline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// split splits the end of a path into a name and a number, as "[17]", "/draft@2" and
// "/step-9" have. The number is negative if there is none.
func split(rest string) (name string, number int64) {
	digits := strings.TrimSuffix(rest, "]")
	at := len(digits)
	for at > 0 && digits[at-1] >= '0' && digits[at-1] <= '9' {
		at--
	}
	const most = 15 // digits
	if text := digits[at:]; text == "0" || text != "" && text[0] != '0' && len(text) <= most {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return digits[:at], n
		}
	}
	return rest, -1
}

// slotOf returns the slot of a child. Slots are in the order of names and numbers.
func slotOf(rest string) string {
	name, number := split(rest)
	if number < 0 {
		return name
	}
	const digits = "0123456789abcdef"
	const width = 12
	b := append(make([]byte, 0, len(name)+1+width), name...)
	b = append(b, 1)
	for shift := 4 * (width - 1); shift >= 0; shift -= 4 {
		b = append(b, digits[number>>slotBits>>shift&15])
	}
	return string(b)
}

// compare orders the children of a node.
func compare(a, b string) int {
	x, m := split(a)
	y, n := split(b)
	return cmp.Or(strings.Compare(x, y), cmp.Compare(m, n), strings.Compare(a, b))
}

// find returns where a child is, or belongs.
func (s *slot) find(rest string) (at int, found bool) {
	if n := len(s.kids); n > 0 { // most come in order
		switch c := compare(s.kids[n-1].rest, rest); {
		case c == 0:
			return n - 1, true
		case c < 0:
			return n, false
		}
	}
	return slices.BinarySearchFunc(s.kids, rest, func(k *node, rest string) int { return compare(k.rest, rest) })
}

func (s *slot) insert(at int, k *node) { s.kids = slices.Insert(s.kids, at, k) }

func (s *slot) counts() (c Counts) {
	for _, k := range s.kids {
		c[k.state()]++
	}
	return c
}
