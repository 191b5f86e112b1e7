package cli

import (
	"io"
	"os"

	"github.com/stonelayer/stone/internal/text"
	"golang.org/x/term"
)

// screen returns what tells the size of the terminal that standard error is, or
// nil if it is none, or one that cannot be drawn on.
func (a *app) screen() func() (columns, lines int) {
	f := terminal(a.Stderr)
	if f == nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (int, int) {
		columns, lines, err := term.GetSize(int(f.Fd()))
		if err != nil || columns < 1 || lines < 1 {
			return 80, 24
		}
		return columns, lines
	}
}

// A shielded terminal shows no control characters but line breaks and tabs: with
// others the text of a model could control the terminal.
type shielded struct {
	file *os.File
	text.Writer
}

// shield returns a writer in place of a file: a terminal is shielded, other files get
// the bytes as they are.
func shield(w io.Writer) io.Writer {
	if f := terminal(w); f != nil {
		return &shielded{f, text.Writer{W: f}}
	}
	return w
}

// unshielded returns the file itself, for a display that draws on it.
func unshielded(w io.Writer) io.Writer {
	if s, ok := w.(*shielded); ok {
		return s.file
	}
	return w
}

// terminal returns the file if it is a terminal.
func terminal(file any) *os.File {
	if s, ok := file.(*shielded); ok {
		return s.file
	}
	if f, ok := file.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// color reports whether the user wants any, see https://no-color.org.
func color() bool { return os.Getenv("NO_COLOR") == "" }
