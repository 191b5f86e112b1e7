package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/trust"
)

// pins returns a function for Config.Accept that stores the first definition of every tool on the server in the user's
// configuration directory, and rejects a changed definition until the user accepts it.
func pins(dir, server string) func([]Definition) error {
	return func(all []Definition) error {
		store, err := trust.Open()
		if err != nil {
			return err
		}
		known, err := store.Tools(dir, server)
		if err != nil {
			return err
		}
		fresh, refused := map[string]json.RawMessage{}, map[string]trust.Refused{}
		var changed []string
		for _, d := range all {
			now, err := json.Marshal(d)
			if err != nil {
				return err
			}
			raw, ok := known.Accepted[d.Name]
			if !ok {
				fresh[d.Name] = now
				continue
			}
			var was Definition
			if err := json.Unmarshal(raw, &was); err != nil {
				return fmt.Errorf("the accepted definition of the tool %q cannot be read: %w", d.Name, err)
			}
			if changes := d.Changes(was); changes != "" {
				refused[d.Name] = trust.Refused{Definition: now, Changes: changes}
				changed = append(changed, fmt.Sprintf("%q: %s", d.Name, changes))
			}
		}
		switch {
		case changed != nil:
			if err := store.Refuse(dir, server, refused); err != nil {
				return err
			}
			slices.Sort(changed)
			return fmt.Errorf("it has changed the definition of its tool %s: read what has changed, and accept it with: stone trust --tools %s %s", strings.Join(changed, ", and of "), quoted(server), quoted(dir))
		case len(fresh) > 0:
			if err := store.Accept(dir, server, fresh); err != nil {
				return fmt.Errorf("the definitions of its tools cannot be kept: %w", err)
			}
		}
		return nil
	}
}

// tokens returns functions that store the user's tokens for a server.
func tokens(dir, server string) (load func() ([]byte, error), save func([]byte) error) {
	load = func() ([]byte, error) {
		store, err := trust.Open()
		if err != nil {
			return nil, err
		}
		return store.Tokens(dir, server)
	}
	return load, func(raw []byte) error {
		store, err := trust.Open()
		if err != nil {
			return err
		}
		return store.SetTokens(dir, server, raw)
	}
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
