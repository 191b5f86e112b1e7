package tui

import (
	"strings"

	"github.com/stonelayer/stone/internal/text"
)

// style is the control sequence written before a line. Colors are not used if the terminal has none or the user does not want
// them.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	dim    style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"

	reset = "\x1b[0m"
)

// A line is a line of the screen. Its text is printable.
type line struct {
	text string
	style
}

// draw returns the line cut to the width. If fill is set, it is padded with spaces.
func (l line) draw(width int, fill bool) string {
	cut := text.Cut(l.text, width)
	pad := ""
	if fill {
		pad = strings.Repeat(" ", max(0, width-text.Width(cut)))
	}
	if l.style == plain || cut == "" {
		return cut + pad
	}
	return string(l.style) + cut + reset + pad
}

// invisible removes characters that join other characters or change their appearance, because terminals disagree about the width
// of the result.
var invisible = strings.NewReplacer("\u200d", "", "\ufe0e", "", "\ufe0f", "")

// printable returns the lines of a text without control sequences.
func printable(s string) []string {
	lines := strings.Split(invisible.Replace(s), "\n")
	for i, l := range lines {
		lines[i] = text.Lines(l)[0]
	}
	return lines
}

// oneLine is like printable, but returns a single line.
func oneLine(s string) string { return text.Line(invisible.Replace(s)) }

// wrap breaks the lines of a text at the width: between words, or within a word that is too long.
func wrap(s string, width int) []string {
	var out []string
	for _, l := range printable(s) {
		out = append(out, text.Fold(l, max(1, width))...)
	}
	return out
}
