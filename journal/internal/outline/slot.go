package outline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// split splits the end of a path, such as "[17]", "/draft@2" or "/step-9", into a name and a number. If there is no number, it
// returns -1.
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

// key is the end of a path, split into name and number. Keys are sorted by name, then by number.
type key struct {
	rest   string
	name   string
	number int64
}

func keyOf(rest string) key {
	name, number := split(rest)
	return key{rest, name, number}
}

// slot returns the slot of the child with the key. Slots sort in the same order as keys.
func (k key) slot() string {
	if k.number < 0 {
		return k.name
	}
	const digits = "0123456789abcdef"
	const width = 12
	b := append(make([]byte, 0, len(k.name)+1+width), k.name...)
	b = append(b, 1)
	for shift := 4 * (width - 1); shift >= 0; shift -= 4 {
		b = append(b, digits[k.number>>slotBits>>shift&15])
	}
	return string(b)
}

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(k.name, o.name), cmp.Compare(k.number, o.number), strings.Compare(k.rest, o.rest))
}

// find returns the index of the child with the key, or the index at which it would be inserted.
func (s *slot) find(k key) (at int, found bool) {
	if n := len(s.kids); n > 0 { // usually keys arrive in order, without gaps
		if last := s.kids[n-1].key; last.compare(k) < 0 {
			return n, false
		}
		if i := k.number - s.kids[0].number; i >= 0 && i < int64(n) && s.kids[i].rest == k.rest {
			return int(i), true
		}
	}
	return slices.BinarySearchFunc(s.kids, k, func(n *node, k key) int { return n.compare(k) })
}

func (s *slot) insert(at int, k *node) { s.kids = slices.Insert(s.kids, at, k) }

func (s *slot) counts() (c Counts) {
	for _, k := range s.kids {
		c[k.state()]++
	}
	return c
}
