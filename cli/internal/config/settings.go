package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/regular"
)

// Settings are the settings of a project. Unset ones are "".
type Settings struct {
	Pipeline string // path of the package's directory, or of the plan
	Provider string // one of the Protocols
	Model    string
	URL      string
	KeyEnv   string // the variable with the key of the server at URL or, if that is "", of the provider
}

const settingsFile = "settings.json"

// Read reads the settings of a directory .stone from its configuration, and unset ones
// from settings.json. It does not check the rest of the configuration.
// The Pipeline is an absolute path; the default is the directory itself. The error is
// an *Invalid or one of the file system.
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

// Reaches describes where the settings send the requests of the default model, "" if they name nothing.
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

// Check reports an unknown provider or a malformed URL.
func (s Settings) Check() error {
	entries := map[string]string{"provider": s.Provider, "url": s.URL}
	maps.DeleteFunc(entries, func(_, value string) bool { return value == "" })
	// Marshalling strings cannot fail, nor can reading the result.
	data, _ := json.Marshal(entries)
	v, err := edn.FromJSON(data, edn.Limits{})
	if err != nil {
		return err
	}
	faults := form.Read(v, s.read)
	for i := range faults {
		faults[i].Line = 0 // they are in no text
	}
	return faults.Err()
}

// parse reads a file. One whose name ends in .json is JSON.
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
