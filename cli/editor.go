package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// errInterrupted is returned if Ctrl-C is pressed while a line is being read.
var errInterrupted = errors.New("interrupted")

// An editor reads lines at a terminal. The user can edit them and recall earlier ones. While a line is being read, Ctrl-C is a
// key, not a signal.
type editor struct {
	out    *os.File
	typing typing
	term   *term.Terminal

	mu    sync.Mutex
	state *term.State // state of the terminal to restore; nil unless a line is being read
}

// newEditor returns an editor. It returns nil if in or out is not a terminal on which an editor can draw.
func newEditor(in, out *os.File) *editor {
	if in == nil || out == nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	e := &editor{out: out, typing: typing{file: in}}
	e.fresh()
	return e
}

// fresh resets the editor to an empty line. It keeps the history of lines.
func (e *editor) fresh() {
	old := e.term
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&e.typing, e.out}, "")
	if old != nil {
		e.term.History = old.History
	}
}

// line returns the line that the user types. It returns several lines if they are pasted together, or if a line ends with "\".
// The error is io.EOF for Ctrl-D and errInterrupted for Ctrl-C. If there is a hint, Ctrl-C shows the hint and the prompt again
// instead.
func (e *editor) line(hint string) (string, error) {
	if err := e.raw(); err != nil {
		return "", err
	}
	defer e.close()
	if columns, lines, err := term.GetSize(int(e.out.Fd())); err == nil && columns > 0 {
		if err := e.term.SetSize(columns, lines); err != nil {
			return "", err
		}
	}
	e.term.SetBracketedPasteMode(true)
	defer e.term.SetBracketedPasteMode(false)
	var text strings.Builder
	for {
		prompt := "> "
		if text.Len() > 0 {
			prompt = ". "
		}
		e.term.SetPrompt(prompt)
		line, err := e.term.ReadLine()
		switch {
		case e.typing.interrupted && hint == "":
			e.typing.interrupted = false
			return "", errInterrupted
		case e.typing.interrupted:
			e.typing.interrupted = false
			text.Reset()
			_, _ = e.term.Write([]byte(hint + "\n")) // the next read reports a lost terminal
			continue
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			e.fresh() // the editor's line still contains the text
			_, _ = io.WriteString(e.out, "\r\n")
			return "", err
		}
		more := strings.HasSuffix(line, `\`)
		text.WriteString(strings.TrimSuffix(line, `\`))
		if !more && err == nil {
			return text.String(), nil
		}
		text.WriteByte('\n')
	}
}

func (e *editor) raw() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, err = term.MakeRaw(int(e.typing.file.Fd()))
	return err
}

// close restores the terminal. It may be called while a line is being read.
func (e *editor) close() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		_ = term.Restore(int(e.typing.file.Fd()), e.state) // a lost terminal has no state
		e.state = nil
	}
}

// typing is a reader of the keyboard. Ctrl-C discards the current line and ends the read.
type typing struct {
	file        *os.File
	rest        []byte
	interrupted bool // Ctrl-C was pressed, so the current line ends
}

const (
	ctrlC     = 0x03
	emptyLine = "\x05\x15\r" // keys: move to the end, delete everything before, Enter
)

// Read implements io.Reader.
func (k *typing) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		n, err := k.file.Read(b)
		if err != nil {
			return n, err
		}
		k.rest = append(k.rest[:0], b[:n]...)
	}
	if i := bytes.IndexByte(k.rest, ctrlC); i >= 0 { // input typed before Ctrl-C is dropped too
		k.rest, k.interrupted = append([]byte(emptyLine), k.rest[i+1:]...), true
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}
