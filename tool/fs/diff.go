package fs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// contextLines is how many unchanged lines a difference shows around changed ones.
const contextLines = 3

// maxCells bounds the work to find the lines that two texts share. Beyond it, all lines
// between the first and the last difference are shown as changed.
const maxCells = 1 << 20

// difference shows people how a file changes: removed lines begin with "-", added ones
// with "+".
func difference(shown string, old, new []byte) string {
	switch {
	case bytes.Equal(old, new):
		return "no change to " + shown
	case !utf8.Valid(old) || !utf8.Valid(new):
		return fmt.Sprintf("replace %s, which is not text: %d bytes become %d", shown, len(old), len(new))
	}
	a, b := splitLines(old), splitLines(new)
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	d := differ{old: a, lines: []string{"change " + shown + ":"}, after: -1}
	d.changes(from, a[from:len(a)-end], b[from:len(b)-end])
	d.close()
	return strings.Join(d.lines, "\n")
}

func splitLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// differ writes a difference.
type differ struct {
	old   []string
	lines []string
	after int // number of the old line that follows the last change; -1 before the first
}

// changes writes how a, which starts at the given line of the old text, becomes b.
func (d *differ) changes(at int, a, b []string) {
	shared := func(int, int) int32 { return 0 }
	if len(a)*len(b) <= maxCells {
		shared = common(a, b)
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && shared(i, j) > 0:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || shared(i+1, j) >= shared(i, j+1)):
			d.change(at+i, "-", a[i])
			d.after = at + i + 1
			i++
		default:
			d.change(at+i, "+", b[j])
			j++
		}
	}
}

// common returns the number of lines that a and b share, from line i of a and j of b on.
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

// change writes a changed line, after the unchanged lines around the changes so far.
func (d *differ) change(at int, mark, line string) {
	from := max(0, at-contextLines)
	if d.after >= 0 && from <= d.after+contextLines {
		from = d.after
	} else {
		d.close()
		d.lines = append(d.lines, fmt.Sprintf("@@ line %d", from+1))
	}
	d.same(from, at)
	d.after = at
	d.line(mark, line)
}

// close writes the unchanged lines after the last change.
func (d *differ) close() {
	if d.after >= 0 {
		d.same(d.after, min(len(d.old), d.after+contextLines))
	}
}

func (d *differ) same(from, to int) {
	for _, line := range d.old[from:max(from, to)] {
		d.line(" ", line)
	}
}

// line writes a line. What would not be seen in it is written out.
func (d *differ) line(mark, line string) {
	text, ended := strings.CutSuffix(line, "\n")
	text = strings.ReplaceAll(text, "\r", `\r`)
	if !ended {
		text += ` [no newline at the end]`
	}
	d.lines = append(d.lines, mark+text)
}
