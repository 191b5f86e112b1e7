package cli

import (
	"os"

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

// terminal returns the file if it is a terminal.
func terminal(file any) *os.File {
	if f, ok := file.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// color reports whether the user wants any, see https://no-color.org.
func color() bool { return os.Getenv("NO_COLOR") == "" }
