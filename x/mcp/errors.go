package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/stonelayer/stone/internal/redact"
)

var (
	// ErrUncertain is wrapped by the error of a call if the server may have received the call but has not answered it.
	ErrUncertain = errors.New("it may or may not have been done: check before calling it again")
	// ErrClosed is the error of calls after the Server has been closed.
	ErrClosed = errors.New("mcp: the server was closed")
)

// A StartError is the reason why a server could not be started or reached.
type StartError struct {
	// Server is the server's name.
	Server string
	// Stderr is the end of the command's standard error, including lines of standard output that are not messages.
	Stderr string
	// Err is the reason, without secrets. It matches the same targets in errors.Is as the original error.
	Err error
}

// Error returns the reason and the line of Stderr that explains it, joined into one line.
func (e *StartError) Error() string {
	text := fmt.Sprintf("mcp: the server %q did not start: %v", e.Server, e.Err)
	if line := reason(e.Stderr); line != "" {
		text += "; it said: " + line
	}
	return text
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// A plainError has the text of another error without its secrets. It keeps the original error in a closure, which is never
// printed.
type plainError struct {
	text string
	is   func(error) bool
}

func (e *plainError) Error() string        { return e.text }
func (e *plainError) Is(target error) bool { return e.is(target) }

// hidden returns an error like err, with the secrets removed from its text.
func hidden(secrets *redact.Set, err error) error {
	text := strings.Join(strings.Fields(secrets.Clean(err.Error())), " ")
	return &plainError{text, func(target error) bool { return errors.Is(err, target) }}
}

// secrets returns the secrets of the configuration.
func (c Config) secrets() *redact.Set {
	s := new(redact.Set)
	for name, value := range c.Env {
		s.NoteVariable(name, string(value))
	}
	for _, value := range c.Header {
		s.NoteHeader(string(value))
	}
	s.NoteURL(string(c.URL))
	if u, err := url.Parse(string(c.URL)); err == nil && u.RequestURI() != "/" && c.URL != "" {
		s.Note(strings.TrimPrefix(u.RequestURI(), "/")) // some servers expect a key in the path
	}
	return s
}
