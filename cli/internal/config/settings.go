package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/regular"
)

// Settings holds the settings of a project. A setting that is not set is "".
type Settings struct {
	Pipeline string // path of the package's directory or of the plan
	Provider string // one of the Protocols
	Model    string
	URL      string
	KeyEnv   string // environment variable that contains the key of the server at URL or, if URL is "", of the provider
}

const settingsFile = "settings.json"

// Read reads the settings of a .stone directory. Settings that its configuration does not contain are taken from settings.json.
// The rest of the configuration is not checked. Pipeline is an absolute path; its default is the directory itself. The error is
// either an *Invalid or a file system error.
func Read(dir string) (Settings, error) {
	var s Settings
	file, err := fileIn(dir)
	if err != nil {
		return s, err
	}
	for _, path := range []string{file, filepath.Join(dir, settingsFile)} {
		var of Settings
		if path == "" {
			continue
		}
		v, err := parse(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Settings{}, err
		}
		faults := form.Read(v, func(m *form.Map) {
			if path == file {
				m.AllowRest()
			}
			of.read(m)
		})
		if err := invalid(path, faults); err != nil {
			return Settings{}, err
		}
		if s.URL == "" { // a key belongs to the server that is named with it
			s.URL, s.KeyEnv = of.URL, cmp.Or(of.KeyEnv, s.KeyEnv)
		}
		s.Pipeline, s.Provider, s.Model = cmp.Or(s.Pipeline, of.Pipeline), cmp.Or(s.Provider, of.Provider), cmp.Or(s.Model, of.Model)
	}
	s.Pipeline = kinds.Within(filepath.Dir(dir), cmp.Or(s.Pipeline, filepath.Base(dir)))
	return s, nil
}

// Reaches returns a description of the addresses to which requests to the default model are sent, or "" if the settings name
// none.
func (s Settings) Reaches() string {
	if s.URL == "" && s.KeyEnv == "" {
		return ""
	}
	line := "the default model " + s.Model + " is asked at " + cmp.Or(s.URL, "the server of its provider")
	if s.KeyEnv != "" {
		line += ", with the key in " + s.KeyEnv
	}
	return line
}

func (s *Settings) read(m *form.Map) {
	kinds.SomeText(m, "pipeline", &s.Pipeline)
	m.At("provider").OneOf(&s.Provider, Protocols...)
	kinds.SomeText(m, "model", &s.Model)
	(&kinds.Reader{}).Address(m, "url", &s.URL)
	m.At("key").Map(func(m *form.Map) {
		m.Need("env")
		kinds.SomeText(m, "env", &s.KeyEnv)
	})
}

// Check returns an error if the provider is unknown or the URL is malformed.
func (s Settings) Check() error {
	entries := map[string]string{"provider": s.Provider, "url": s.URL}
	maps.DeleteFunc(entries, func(_, value string) bool { return value == "" })
	// Marshalling strings cannot fail, and neither can reading the result.
	data, _ := json.Marshal(entries)
	v, err := edn.FromJSON(data, edn.Limits{})
	if err != nil {
		return err
	}
	faults := form.Read(v, s.read)
	for i := range faults {
		faults[i].Line = 0 // these faults are not in a file
	}
	return faults.Err()
}

// parse reads a file. A file whose name ends in .json is read as JSON, any other as EDN.
func parse(path string) (edn.Value, error) {
	data, err := regular.Read(path, regular.Config)
	if err != nil {
		return edn.Value{}, err
	}
	read := edn.ReadEither
	if filepath.Ext(path) == ".json" {
		read = edn.FromJSON
	}
	v, err := read(data, edn.Limits{})
	if at := (*edn.Error)(nil); errors.As(err, &at) {
		return v, &Invalid{path, form.Faults{{Kind: "malformed", Line: at.Line, Column: at.Column, Message: at.Reason}}}
	}
	return v, err
}

// Name is the name of the directory that contains a project's configuration.
const Name = ".stone"

// Find returns the path of the nearest .stone directory, in dir or above it, or "" if there is none. Directories above the user's
// home directory are not searched.
//
// Because the directory contains code that will be run, Find refuses a directory owned by another user, for example in /tmp.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // without a home directory, the search ends at the root
	}
	for {
		path := filepath.Join(dir, Name)
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is a file: want a directory with a Go package that has a Pipeline", path)
		case err == nil && !ours(info):
			return "", fmt.Errorf("%s belongs to another user: if you trust it, name it, as in stone run %s", path, path)
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if above := filepath.Dir(dir); dir != home && above != dir {
			dir = above
		} else {
			return "", nil
		}
	}
}

// files lists the file names that a configuration in a .stone directory can have.
var files = []string{"stone.edn", "stone.json"}

// fileIn returns the path of the configuration in a .stone directory, or "" if there is none.
func fileIn(dir string) (string, error) {
	var found string
	for _, name := range files {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case found != "":
			return "", fmt.Errorf("both %s and %s exist: keep one", found, path)
		default:
			found = path
		}
	}
	return found, nil
}

// Invalid is the error for a configuration that cannot be used. It contains all faults, in the order of the text.
type Invalid struct {
	File   string
	Faults form.Faults
}

// Lines returns one line for each fault, as file:line:column: path: message.
func (e *Invalid) Lines() []string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = e.line(f)
	}
	return lines
}

func (e *Invalid) line(f form.Fault) string {
	if f.Line == 0 {
		return e.File + ": " + f.Error()
	}
	return e.File + ":" + f.Error()
}

// Error returns one line with the first fault and the number of the other faults.
func (e *Invalid) Error() string {
	line := e.line(e.Faults[0])
	if n := len(e.Faults) - 1; n > 0 {
		line += fmt.Sprintf(" (and %d more: the command config check lists them)", n)
	}
	return line
}

// invalid returns an *Invalid with the given faults, or nil if there are none.
func invalid(file string, faults form.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	for i := range faults {
		f := &faults[i]
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		if f.Kind == form.UnknownKey && redact.Secretive(name) {
			f.Message, f.Suggestion = fmt.Sprintf("unknown field %s: %s", name, kinds.NoSecret), ""
		}
	}
	slices.SortStableFunc(faults, func(a, b form.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	// A value can be checked twice, by itself and for its references; report its faults only once.
	return &Invalid{file, slices.Compact(faults)}
}
