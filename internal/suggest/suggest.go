// Package suggest finds the name that was probably meant when an unknown name was used.
package suggest

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Closest returns the candidate that was probably meant by name, or "" if none is close. It ignores case, and allows one wrong
// letter in three, but at least one. A name of at least three letters may also be the beginning of exactly one candidate.
func Closest(name string, candidates iter.Seq[string]) string {
	runes := []rune(name)
	best, bound := "", max(1, len(runes)/3)+1
	begun, longer := "", 0
	for c := range candidates {
		switch {
		case c == name:
		case strings.EqualFold(c, name):
			return c
		default:
			if d := distance(runes, c, bound); d < bound {
				best, bound = c, d
			}
			if strings.HasPrefix(c, name) {
				begun, longer = c, longer+1
			}
		}
	}
	if best == "" && longer == 1 && len(runes) >= 3 {
		return begun
	}
	return best
}

// Hint returns ": did you mean X?" for the candidate closest to name, or "" if none is close.
func Hint(name string, candidates iter.Seq[string]) string {
	if near := Closest(name, candidates); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// distance returns the number of letters that must be inserted, removed, changed or swapped with their neighbors to turn a into
// text. If that is not less than bound, it returns bound.
func distance(a []rune, text string, bound int) int {
	if n := utf8.RuneCountInString(text); max(len(a)-n, n-len(a)) >= bound {
		return bound
	}
	b := []rune(text)
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ra := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		least := row[0]
		for j, rb := range b {
			cost := last[j]
			if ra != rb {
				cost++
			}
			row[j+1] = min(cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && ra == b[j-1] && rb == a[i-1] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least >= bound {
			return bound
		}
	}
	return row[len(b)]
}
