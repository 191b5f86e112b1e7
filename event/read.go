package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/stonelayer/stone/internal/lines"
)

// A LineError reports a line of a trace file that is not a valid event. Reading continues with the next line.
type LineError struct {
	Line   int    // counted from 1
	Reason string // one line, such as "not JSON (…)"
}

// Error returns a message with the line number and the reason.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Append opens a trace file for use with a [Writer], and creates it if it does not exist. If a crash left the file without a
// final newline, Append adds one, so that the next event starts a new line.
func Append(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("trace file cannot be written: %w", err)
	}
	if err := endLastLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("trace file cannot be continued: %w", err), f.Close())
	}
	return f, nil
}

func endLastLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = f.Write([]byte{'\n'})
	}
	return err
}

// Read returns an iterator over the events of a trace file, in file order. It reads only as far as the caller iterates, and keeps
// only one line in memory.
//
// A line that is truncated, not an event or longer than 64 MiB yields a [*LineError], and reading continues with the next line.
// Any other error comes from the reader and is yielded last. Blank lines are skipped. The sequence can be iterated only once.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for l, err := range lines.Read(r, lines.Max) {
			var e Event
			if err == nil {
				e, err = parseLine(l)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// parseLine returns the event that a line contains, or an error.
func parseLine(l lines.Line) (e Event, err error) {
	if l.Fault != "" {
		return e, &LineError{l.Number, l.Fault}
	}
	if err = e.UnmarshalJSON(l.Text); err != nil {
		err = &LineError{l.Number, unusable(l.Text, err)}
	}
	return e, err
}

// maxReason is the maximum number of characters that a LineError keeps from an error.
const maxReason = 200

// unusable returns the reason why a line is not an event. If the line is a JSON object, the reason is the text of err.
func unusable(line []byte, err error) string {
	var object map[string]json.RawMessage
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch bad := json.Unmarshal(line, &object); {
	case bad == nil && object == nil:
		return "not a JSON object but null"
	case bad == nil:
		return lines.Printable(lines.Cut(err.Error(), maxReason))
	case errors.As(bad, &mistyped):
		return "not a JSON object but " + mistyped.Value
	case errors.As(bad, &syntax) && syntax.Offset == int64(len(line)) && strings.Contains(bad.Error(), "unexpected end"):
		return "not JSON (cut off before the end of the object)"
	case errors.As(bad, &syntax):
		return fmt.Sprintf("not JSON (%v, at byte %d)", syntax, syntax.Offset)
	default:
		return fmt.Sprintf("not JSON (%v)", bad)
	}
}
