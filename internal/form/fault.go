package form

import (
	"fmt"
	"strings"
)

// Kinds of faults. Users of the package may define others.
const (
	Missing    = "missing"      // a required field is missing
	UnknownKey = "unknown-keys" // a field that the reader does not request
	Unknown    = "unknown"      // a name that is not known
	Invalid    = "invalid"      // a value of the wrong kind
	OutOfRange = "out-of-range" // a number outside its bounds
	Duplicate  = "duplicate"    // a name that occurs twice
)

// A Fault reports one wrong or missing value and its place.
type Fault struct {
	Kind string // such as "unknown-keys"
	// Path leads to the value, or to the place of a missing value, such as nodes[2].done.must[1]. It is empty for the root value.
	Path string
	// In is the path of the enclosing map if the fault is a missing or unknown field.
	In           string
	Line, Column int    // counted from 1; 0 if the value was not read from a text
	Message      string // what was expected and what was found
	Suggestion   string // the most similar valid name; "" if no valid name is similar
}

// Error returns one line with the position, the path, the message and the suggestion.
func (f Fault) Error() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", f.Line, f.Column)
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	if f.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %q?", f.Suggestion)
	}
	return b.String()
}

// Faults is a list of faults found in a value, in the order in which they were found.
type Faults []Fault

// Error returns one line with the first fault and the number of the other faults.
func (fs Faults) Error() string {
	switch len(fs) {
	case 0:
		return "no fault"
	case 1:
		return fs[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", fs[0], len(fs)-1)
}

// Err returns f as an error, or nil if f is empty.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// most is the maximum number of faults listed. Finding the line of a value requires a scan of the text, so for a hostile text that
// consists only of faults, the time would grow with the square of its length.
const most = 1000

// log collects the faults found in a value.
type log struct {
	faults Faults
	more   int
}

func (l *log) add(f func() Fault) {
	if len(l.faults) == most {
		l.more++
		return
	}
	l.faults = append(l.faults, f())
}
