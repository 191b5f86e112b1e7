package fs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/text"
)

// contextLines is the number of unchanged lines shown around each change.
const contextLines = 3

// difference returns a human-readable diff of a file: removed lines begin with "-", and added lines with "+".
func difference(shown string, old, new []byte) string {
	switch {
	case bytes.Equal(old, new):
		return "no change to " + shown
	case !utf8.Valid(old) || !utf8.Valid(new):
		return fmt.Sprintf("replace %s, which is not text: %d bytes become %d", shown, len(old), len(new))
	}
	a, b := splitLines(old), splitLines(new)
	d := differ{old: a, lines: []string{"change " + shown + ":"}, after: -1}
	at := 0
	for _, e := range text.Diff(a, b) {
		if e.Sign != ' ' {
			from := max(0, at-contextLines)
			if d.after >= 0 && from <= d.after+contextLines {
				from = d.after
			} else {
				d.close()
				d.lines = append(d.lines, fmt.Sprintf("@@ line %d", from+1))
			}
			d.same(from, at)
			d.after = at
			d.line(string(e.Sign), e.Line)
		}
		if e.Sign != '+' {
			at++
		}
		if e.Sign == '-' {
			d.after = at
		}
	}
	d.close()
	return strings.Join(d.lines, "\n")
}

func splitLines(content []byte) []string {
	lines := strings.SplitAfter(string(content), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// differ writes a difference.
type differ struct {
	old   []string
	lines []string
	after int // the number of the old line that follows the last change; -1 before the first change
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

// line writes a line with invisible characters escaped.
func (d *differ) line(mark, line string) {
	shown, ended := strings.CutSuffix(line, "\n")
	shown = strings.ReplaceAll(shown, "\r", `\r`)
	if !ended {
		shown += ` [no newline at the end]`
	}
	d.lines = append(d.lines, mark+shown)
}
