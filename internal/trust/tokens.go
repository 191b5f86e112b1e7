package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stonelayer/stone/internal/regular"
)

// tokens is the file with the tokens of the user for a server. It is readable by the user alone,
// and one for each server, so that a process which renews a token replaces no other.
func (s *Store) tokens(project, server string) (string, error) {
	project, err := real(project)
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(project + "\x00" + server))
	return filepath.Join(filepath.Dir(s.file), "tokens", fmt.Sprintf("%x.json", name[:16])), nil
}

// Tokens returns what SetTokens was given last, or nothing.
func (s *Store) Tokens(project, server string) ([]byte, error) {
	file, err := s.tokens(project, server)
	if err != nil {
		return nil, err
	}
	data, err := regular.Read(file, regular.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// SetTokens keeps the tokens of the user for a server, which are JSON.
func (s *Store) SetTokens(project, server string, tokens []byte) error {
	file, err := s.tokens(project, server)
	if err != nil {
		return err
	}
	return write(file, json.RawMessage(tokens))
}
