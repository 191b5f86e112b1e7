package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/stonelayer/stone/event"
)

const (
	maxLine    = 64 << 20  // bytes; a longer line is skipped and reported
	readBuffer = 256 << 10 // bytes
)

// A LineError is a line of a trace file that could not be used. Reading continues after
// it.
type LineError struct {
	Line   int    // counted from 1
	Reason string // in one line, such as "not JSON (…)"
}

// Error returns the number of the line and the reason.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Append opens a trace file for a [Writer], and creates it if it does not exist. If a
// crash left the file without a last newline, Append adds one, so that the next event has
// a line of its own.
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

// Read returns the events of a trace file in file order. It reads as far as the caller
// iterates and keeps one line in memory.
//
// A line that is truncated, is no event or is longer than 64 MiB yields a [*LineError], and reading
// continues with the next line. Any other error comes from the reader and is yielded last. Blank
// lines are skipped. The sequence can be iterated once.
func Read(r io.Reader) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for l, err := range lines(r, maxLine) {
			var e event.Event
			if err == nil {
				e, err = l.parse()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace file cannot be read: %w", err)
	}
	return f, nil
}

// A line is one line of a trace file, without its newline. The text is valid
// until the next line is read.
type line struct {
	number int
	text   []byte
}

// lines yields the lines that are not blank, with the errors of [Read].
func lines(r io.Reader, limit int) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		br := bufio.NewReaderSize(r, readBuffer)
		var long []byte // a line that does not fit br's buffer
		for n := 1; ; n++ {
			text, err := br.ReadSlice('\n')
			size := len(text)
			if err == bufio.ErrBufferFull {
				long, size, err = readLong(br, append(long[:0], text...), limit)
				text = long
			}
			if err != nil && err != io.EOF {
				yield(line{}, fmt.Errorf("trace: reading line %d: %w", n, err))
				return
			}
			var more bool
			switch {
			case size > limit:
				more = yield(line{}, &LineError{n, fmt.Sprintf("longer than %d bytes", limit)})
			case len(bytes.TrimSpace(text)) == 0:
				more = true
			default:
				more = yield(line{n, bytes.TrimSuffix(text, []byte{'\n'})}, nil)
			}
			if !more || err == io.EOF {
				return
			}
		}
	}
}

// readLong reads the rest of a line that starts with head. It keeps at most limit bytes,
// and returns the number of bytes of the line.
func readLong(br *bufio.Reader, head []byte, limit int) (text []byte, size int, err error) {
	text, size, err = head, len(head), bufio.ErrBufferFull
	for err == bufio.ErrBufferFull {
		var part []byte
		part, err = br.ReadSlice('\n')
		size += len(part)
		if size <= limit {
			text = append(text, part...)
		}
	}
	return text, size, err
}

// parse reads the line as an event.
func (l line) parse() (e event.Event, err error) {
	if err = e.UnmarshalJSON(l.text); err != nil {
		err = &LineError{l.number, l.reason(err)}
	}
	return e, err
}

// reason says why the line is no event: it is no object, or the event has the error.
func (l line) reason(err error) string {
	var object map[string]json.RawMessage
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch bad := json.Unmarshal(l.text, &object); {
	case bad == nil && object == nil:
		return "not a JSON object but null"
	case bad == nil:
		return printable(cut(err.Error(), maxExtra))
	case errors.As(bad, &mistyped):
		return "not a JSON object but " + mistyped.Value
	case errors.As(bad, &syntax) && syntax.Offset == int64(len(l.text)) && strings.Contains(bad.Error(), "unexpected end"):
		return "not JSON (cut off before the end of the object)"
	case errors.As(bad, &syntax):
		return fmt.Sprintf("not JSON (%v, at byte %d)", syntax, syntax.Offset)
	default:
		return fmt.Sprintf("not JSON (%v)", bad)
	}
}
