package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stonelayer/stone/internal/suggest"
)

// Settings are those of a project. What is not set is "".
type Settings struct {
	Pipeline string // path of the package's directory, or of the plan
	Provider string // openai or anthropic
	Model    string
	URL      string
}

// Providers are the values that Provider may have.
var Providers = []string{"anthropic", "openai"}

const file = "settings.json"

// Read reads the settings in a directory .stone. The Pipeline is a path that
// holds from anywhere; without one it is the directory itself. An error names the
// file, line and column.
func Read(dir string) (Settings, error) {
	var s Settings
	path := filepath.Join(dir, file)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err == nil {
		if at, err := s.parse(data); err != nil {
			line, column := position(data, at)
			return Settings{}, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
	}
	switch {
	case s.Pipeline == "":
		s.Pipeline = dir
	case !filepath.IsAbs(s.Pipeline):
		s.Pipeline = filepath.Join(filepath.Dir(dir), s.Pipeline)
	}
	return s, nil
}

// Check reports a provider or URL that cannot be meant.
func (s Settings) Check() error {
	for key, value := range map[string]string{"provider": s.Provider, "url": s.URL} {
		if err := check(key, value); value != "" && err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// parse sets what the JSON says. With an error comes the offset of its place.
func (s *Settings) parse(data []byte) (at int, err error) {
	fields := map[string]*string{"pipeline": &s.Pipeline, "provider": &s.Provider, "model": &s.Model, "url": &s.URL}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if begin, err := dec.ReadToken(); err != nil {
		return syntax(dec, err)
	} else if begin.Kind() != '{' {
		return 0, errors.New(`want an object, as {"model": "gpt-5-mini"}`)
	}
	for dec.PeekKind() != '}' {
		at := next(data, dec)
		name, err := dec.ReadToken()
		if err != nil {
			return syntax(dec, err)
		}
		key := name.String()
		field := fields[key]
		if field == nil {
			return at, unknown(key, fields)
		}
		at = next(data, dec)
		value, err := dec.ReadToken()
		if err != nil {
			return syntax(dec, err)
		}
		if value.Kind() != '"' || value.String() == "" {
			return at, fmt.Errorf("%s: want a string that is not empty", key)
		}
		if *field = value.String(); check(key, *field) != nil {
			return at, fmt.Errorf("%s: %w", key, check(key, *field))
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntax(dec, err)
	}
	if at := next(data, dec); at < len(data) {
		return at, errors.New("want nothing behind the object")
	}
	return 0, nil
}

// next returns the offset of the token that comes next.
func next(data []byte, dec *jsontext.Decoder) int {
	at := int(dec.InputOffset())
	return at + len(data[at:]) - len(bytes.TrimLeft(data[at:], " \t\r\n,:"))
}

// syntax says what is wrong with the JSON without the decoder's own position.
func syntax(dec *jsontext.Decoder, err error) (int, error) {
	var bad *jsontext.SyntacticError
	switch {
	case errors.As(err, &bad):
		return int(bad.ByteOffset), fmt.Errorf("this is no JSON: %w", bad.Err)
	case errors.Is(err, io.EOF):
		err = errors.New("this is no JSON: it ends too early")
	}
	return int(dec.InputOffset()), err
}

// position counts lines and columns, in bytes, from 1.
func position(data []byte, at int) (line, column int) {
	before := data[:min(at, len(data))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

func check(key, value string) error {
	switch key {
	case "provider":
		if !slices.Contains(Providers, value) {
			return fmt.Errorf("%q is none: want %s", value, strings.Join(Providers, " or "))
		}
	case "url":
		u, err := url.Parse(value)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return errors.New("want an address, as http://localhost:8000") // the value may hold a secret
		case u.User != nil || u.RawQuery != "":
			return errors.New("want an address without user and query: " + fromEnvironment)
		}
	}
	return nil
}

const fromEnvironment = "a secret belongs into the environment, as OPENAI_API_KEY or ANTHROPIC_API_KEY"

// secrets are parts of names that nobody gives to what everybody may read.
var secrets = []string{"key", "token", "secret", "password", "auth", "credential"}

func unknown(key string, fields map[string]*string) error {
	lower := strings.ToLower(key)
	if slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(lower, s) }) {
		return fmt.Errorf("%q is not for settings: %s", key, fromEnvironment)
	}
	names := slices.Collect(maps.Keys(fields))
	slices.Sort(names)
	best := suggest.Closest(key, slices.Values(names))
	return fmt.Errorf("unknown key %q: %s", key, cmp.Or(meant(best), "want "+strings.Join(names, ", ")))
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", name)
}
