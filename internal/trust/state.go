package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/regular"
)

// A project's state consists of the databases that commands keep in its directory .stone. Files from a checkout are not trusted
// in their place, because they may contain answers that nobody gave. The user's configuration directory has a mark for each file
// with its identity in the file system, which a replaced file lacks.

// making is how long an announced file may take to appear.
const making = time.Minute

// errUnknown is mark's error for a file that cannot be distinguished from its replacement and is therefore not trusted.
var errUnknown = errors.New("the file system cannot distinguish a file from its replacement: name the file, or add --trust")

// mark describes a file without its contents: its identity, whether others may write it or its directory, and where a link leads.
func mark(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(file); err == nil {
			info, err = os.Stat(file)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "-> " + link, nil
		}
		if err != nil {
			return "", err
		}
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	id := identity(file, info)
	if id == "" {
		return "", errUnknown
	}
	return fmt.Sprintf("%s %o %o %s", id, info.Mode().Perm()&0o022, dir.Mode().Perm()&0o002, link), nil
}

// of returns the path of the file with a file's mark.
func (s *Store) of(folder, path string) (string, error) {
	dir, err := real(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(filepath.Join(dir, filepath.Base(path))))
	return filepath.Join(filepath.Dir(s.file), folder, fmt.Sprintf("%x.json", name[:16])), nil
}

// Callers is the file with the tokens that allow use of a project's server.
func (s *Store) Callers(project string) (string, error) {
	return s.of("callers", filepath.Join(project, "tokens"))
}

// Make announces that this process will create a file, so others trust it from the start.
func (s *Store) Make(file string) error { return s.keep(file, time.Now().UTC().Format(time.RFC3339)) }

// Believe marks a file as trusted: this user's Stone created it, or the user was asked.
func (s *Store) Believe(file string) error {
	m, err := mark(file)
	if err != nil {
		return err
	}
	return s.keep(file, m)
}

func (s *Store) keep(file, m string) error {
	at, err := s.of("state", file)
	if err != nil {
		return err
	}
	return write(at, m)
}

// Believed reports whether a file is the one that was marked.
func (s *Store) Believed(file string) (bool, error) {
	m, err := mark(file)
	if err != nil && !errors.Is(err, errUnknown) {
		return false, err
	}
	at, err := s.of("state", file)
	if err != nil {
		return false, err
	}
	data, err := regular.Read(at, regular.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var known string
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the mark of %s: %w", file, err)
	}
	if began, err := time.Parse(time.RFC3339, known); err == nil && time.Since(began) < making {
		return true, nil
	}
	return m != "" && known == m, nil
}

// Foreign returns why a file beside a database, such as its log, does not belong to it: "" if it does, or if there is no such
// file.
func Foreign(file string) string {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	case info.Mode()&fs.ModeSymlink != 0:
		return "is a link"
	case !info.Mode().IsRegular():
		return "is no regular file"
	case tracked(file):
		return "is a file of the repository"
	}
	return ""
}

// tracked reports whether git tracks a file. It reads the index itself, because git runs programs named in a checkout's
// configuration.
func tracked(file string) bool {
	file, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if text, err := regular.Read(git, regular.Config); err == nil { // of a work tree
			if to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: "); ok {
				git = to
				if !filepath.IsAbs(to) {
					git = filepath.Join(dir, to)
				}
			}
		}
		entries, _ := os.ReadDir(git)
		for _, e := range entries {
			if e.Name() != "index" && !strings.HasPrefix(e.Name(), "sharedindex.") {
				continue
			}
			data, err := regular.Read(filepath.Join(git, e.Name()), regular.Source)
			rel, failed := filepath.Rel(dir, file)
			if err == nil && failed == nil && indexed(data, strings.ToLower(filepath.ToSlash(rel))) {
				return true
			}
		}
		if filepath.Dir(dir) == dir {
			return false
		}
	}
}

// tokens returns the file with the user's tokens for a server. Only the user can read it. Each server has its own, so renewing
// one token replaces no other.
func (s *Store) tokens(project, server string) (string, error) {
	project, err := real(project)
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(project + "\x00" + server))
	return filepath.Join(filepath.Dir(s.file), "tokens", fmt.Sprintf("%x.json", name[:16])), nil
}

// Tokens returns the tokens last given to SetTokens, if any.
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

// SetTokens stores the user's tokens for a server, as JSON.
func (s *Store) SetTokens(project, server string, tokens []byte) error {
	file, err := s.tokens(project, server)
	if err != nil {
		return err
	}
	return write(file, json.RawMessage(tokens))
}
