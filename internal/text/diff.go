package text

import (
	"fmt"
	"strings"
)

// An Edit is a line in the difference between two texts. Its sign is ' ' if the line is in both texts, '-' if it is only in the
// first, and '+' if it is only in the second.
type Edit struct {
	Sign byte
	Line string
}

// maxCells limits the time and memory for finding common lines. In larger texts, all lines from the first to the last difference
// count as changed.
const maxCells = 1 << 20

// Diff returns the edits that turn the lines a into the lines b.
func Diff(a, b []string) []Edit {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := edits(nil, ' ', a[:head])
	out = between(out, a[head:len(a)-tail], b[head:len(b)-tail])
	return edits(out, ' ', a[len(a)-tail:])
}

func edits(out []Edit, sign byte, lines []string) []Edit {
	for _, l := range lines {
		out = append(out, Edit{sign, l})
	}
	return out
}

// between appends the edits that turn a into b. The first lines of a and b differ, and so do their last lines.
func between(out []Edit, a, b []string) []Edit {
	if len(a)*len(b) > maxCells {
		return edits(edits(out, '-', a), '+', b)
	}
	shared := common(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, Edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || shared(i+1, j) >= shared(i, j+1)):
			out = append(out, Edit{'-', a[i]})
			i++
		default:
			out = append(out, Edit{'+', b[j]})
			j++
		}
	}
	return out
}

// common returns the length of the longest common subsequence of a[i:] and b[j:], as a function
// of i and j.
func common(a, b []string) func(i, j int) int32 {
	width := len(b) + 1
	n := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				n[i*width+j] = n[(i+1)*width+j+1] + 1
			} else {
				n[i*width+j] = max(n[(i+1)*width+j], n[i*width+j+1])
			}
		}
	}
	return func(i, j int) int32 { return n[i*width+j] }
}

// Changed returns the lines that differ between two texts, each preceded by its sign. It returns at most 12 lines, each cut to
// 200 bytes, and marks omissions with an ellipsis.
func Changed(before, now string) string {
	var out []string
	for _, e := range Diff(strings.Split(before, "\n"), strings.Split(now, "\n")) {
		switch {
		case e.Sign == ' ':
		case len(out) == 12:
			return strings.Join(append(out, "…"), "\n")
		case len(e.Line) > 200:
			out = append(out, string(e.Sign)+" "+strings.ToValidUTF8(e.Line[:200], "")+"…")
		default:
			out = append(out, string(e.Sign)+" "+e.Line)
		}
	}
	return strings.Join(out, "\n")
}

// Unused returns the text of the notice that a body has ended without using some of its recorded steps.
func Unused(paths []string) string {
	const most = 10
	names := strings.Join(paths[:min(len(paths), most)], ", ")
	if len(paths) > most {
		names += fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return "the body ended without steps that it had recorded: " + names + ": what they did was done, and nothing has used it"
}
