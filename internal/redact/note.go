package redact

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Note adds secrets. It ignores values that are too short to be secrets.
func (s *Set) Note(values ...string) { s.add(values...) }

// Join adds all secrets of another set.
func (s *Set) Join(other *Set) {
	if s == nil || other == nil || s == other {
		return
	}
	other.mu.Lock()
	values := slices.Clone(other.values)
	other.mu.Unlock()
	s.add(values...)
}

// NoteHeader adds the values of a header and their parts, so that the token in "Bearer token" is also found on its own. It
// decodes a "Basic" header and adds its password.
func (s *Set) NoteHeader(values ...string) {
	for _, v := range values {
		fields := strings.Fields(v)
		for _, f := range append(fields, v) {
			if !slices.Contains(mediaTypes, f) {
				s.add(f)
			}
		}
		if len(fields) == 2 && strings.EqualFold(fields[0], "basic") {
			if text, err := base64.StdEncoding.DecodeString(fields[1]); err == nil {
				_, password, _ := strings.Cut(string(text), ":")
				s.add(string(text), password)
			}
		}
	}
}

// mediaTypes are not secret: they occur in the headers of every request.
var mediaTypes = []string{"application/json", "text/event-stream"}

// NoteURL adds the secrets in a URL: the password and the values of the query.
func (s *Set) NoteURL(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return // if it cannot be parsed, no other program can use it either
	}
	if password, ok := u.User.Password(); ok {
		s.add(password, u.User.String())
	}
	for _, values := range u.Query() {
		s.add(values...)
	}
}

// NoteVariable adds the value of an environment variable that is passed to a program. Unless the name suggests a secret, it
// ignores values that are probably public: words, paths, and settings for the terminal and the language.
func (s *Set) NoteVariable(name, value string) {
	if !Secretive(name) && (harmless(name) || isWord(value) || isPaths(value)) {
		return
	}
	s.add(value)
	s.NoteURL(value)
}

// NoteEnv adds the secrets in a program's environment. An entry NAME stands for the variable's value in this process. The value in
// an entry NAME=value is added only if the name suggests a secret.
func (s *Set) NoteEnv(env []string) {
	for _, entry := range env {
		name, value, given := strings.Cut(entry, "=")
		switch {
		case !given:
			s.NoteVariable(name, os.Getenv(name))
		case Secretive(name):
			s.add(value)
		}
	}
}

// secretParts are parts of names that suggest a secret. Names of public values do not contain them.
var secretParts = []string{"key", "token", "secret", "password", "passwd", "auth", "credential"}

// Secretive reports whether a name suggests that the value is a secret.
func Secretive(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretParts, func(s string) bool { return strings.Contains(name, s) })
}

func harmless(name string) bool {
	return strings.HasPrefix(name, "LC_") || slices.Contains([]string{"LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ"}, name)
}

// isWord reports whether a value is a single word, such as "production".
func isWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) &&
		(value == strings.ToLower(value) || value == strings.ToUpper(value))
}

// isPaths reports whether a value is a file path or a list of file paths.
func isPaths(value string) bool {
	list := filepath.SplitList(value)
	if len(list) == 1 {
		_, err := os.Stat(value)
		return filepath.IsAbs(value) && err == nil
	}
	return !slices.ContainsFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
}
