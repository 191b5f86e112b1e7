package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/stonelayer/stone/internal/regular"
)

// Tools contains the definitions of a server's tools that the user has accepted, by tool name, and changed definitions that were
// refused.
type Tools struct {
	Accepted map[string]json.RawMessage `json:"accepted"`
	Refused  map[string]Refused         `json:"refused,omitempty"`
}

// Refused is a tool definition that the user has refused.
type Refused struct {
	Definition json.RawMessage `json:"definition"`
	Changes    string          `json:"changes"` // description for people
}

// servers contains the Tools of each server, by the configuration's directory and the server's name in the configuration. It is
// stored next to the file of trusted projects.
type servers map[string]map[string]Tools

func (s *Store) tools() string { return filepath.Join(filepath.Dir(s.file), "tools.json") }

func (s *Store) readTools() (servers, error) {
	data, err := regular.Read(s.tools(), regular.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return servers{}, nil
	}
	all := servers{}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the accepted definitions of tools from %s: %w", s.tools(), err)
	}
	if all == nil { // the file contains null
		all = servers{}
	}
	return all, nil
}

// Tools returns the tool definitions of a server.
func (s *Store) Tools(project, server string) (Tools, error) {
	all, err := s.readTools()
	if err != nil {
		return Tools{}, err
	}
	if project, err = real(project); err != nil {
		return Tools{}, err
	}
	return all[project][server], nil
}

// Accept accepts definitions of a server's tools, in addition to the ones already accepted.
func (s *Store) Accept(project, server string, definitions map[string]json.RawMessage) error {
	return s.change(project, server, func(t *Tools) {
		maps.Copy(t.Accepted, definitions)
		for name := range definitions {
			delete(t.Refused, name)
		}
	})
}

// Refuse stores refused definitions, so that the user can accept them later.
func (s *Store) Refuse(project, server string, definitions map[string]Refused) error {
	return s.change(project, server, func(t *Tools) { maps.Copy(t.Refused, definitions) })
}

// AcceptRefused accepts the refused definitions of a server, and returns them.
func (s *Store) AcceptRefused(project, server string) (accepted map[string]Refused, err error) {
	err = s.change(project, server, func(t *Tools) {
		accepted = t.Refused
		for name, r := range accepted {
			t.Accepted[name] = r.Definition
		}
		t.Refused = nil
	})
	return accepted, err
}

func (s *Store) change(project, server string, change func(*Tools)) error {
	all, err := s.readTools()
	if err != nil {
		return err
	}
	if project, err = real(project); err != nil {
		return err
	}
	t := all[project][server]
	if t.Accepted == nil {
		t.Accepted = map[string]json.RawMessage{}
	}
	if t.Refused == nil {
		t.Refused = map[string]Refused{}
	}
	change(&t)
	if all[project] == nil {
		all[project] = map[string]Tools{}
	}
	all[project][server] = t
	return write(s.tools(), all)
}
