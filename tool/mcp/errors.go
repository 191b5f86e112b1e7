package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

var (
	// ErrUncertain is in the error of a call that the server may have received but
	// did not answer.
	ErrUncertain = errors.New("it may or may not have been done: check before calling it again")
	// ErrClosed is the error of calls to a Server that was closed.
	ErrClosed = errors.New("mcp: the server was closed")
)

// A StartError says why a server could not be started or reached.
type StartError struct {
	// Server is its name.
	Server string
	// Stderr is the end of what the command wrote to its standard error.
	Stderr string
	// Err is the reason. It matches what errors.Is finds in the original error.
	Err error
}

// Error returns the reason and the last line of Stderr in one line.
func (e *StartError) Error() string {
	text := fmt.Sprintf("mcp: the server %q did not start: %v", e.Server, e.Err)
	if line := lastLine(e.Stderr); line != "" {
		text += "; it said: " + line
	}
	return text
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// A plainError has the text of another error without its secrets. It keeps the
// other in a closure, where no printing finds it.
type plainError struct {
	text string
	is   func(error) bool
}

func (e *plainError) Error() string        { return e.text }
func (e *plainError) Is(target error) bool { return e.is(target) }

// A redactor takes the secrets of a Config out of texts.
type redactor func(string) string

func (r redactor) err(err error) error {
	text := strings.Join(strings.Fields(r(err.Error())), " ")
	return &plainError{text, func(target error) bool { return errors.Is(err, target) }}
}

// minSecret is the least length of what is taken for a secret: shorter values, as
// "1", are no secrets, and without them texts would become unreadable.
const minSecret = 5

// redactor returns the function that hides the secrets of the configuration,
// in the forms in which the errors of Go's packages show them.
func (c Config) redactor() redactor {
	var secrets []string
	add := func(values ...string) {
		for _, s := range values {
			if len(s) >= minSecret {
				secrets = append(secrets, s, url.QueryEscape(s))
			}
		}
	}
	for _, s := range c.Env {
		add(string(s))
	}
	for _, s := range c.Header {
		add(string(s))
		if _, token, ok := strings.Cut(string(s), " "); ok { // as in "Bearer …"
			add(token)
		}
	}
	if u, err := url.Parse(string(c.URL)); err == nil && c.URL != "" {
		add(strings.TrimPrefix(u.RequestURI(), "/"), u.User.String())
		if password, ok := u.User.Password(); ok {
			add(password)
		}
		for _, values := range u.Query() {
			add(values...)
		}
	}
	// The longest first, so that no rest of one stays behind.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "[redacted]")
	}
	return strings.NewReplacer(pairs...).Replace
}
