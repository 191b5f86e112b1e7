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

// A project's state consists of the databases that commands keep in its directory .stone. Database files that come
// with a checkout are not trusted, because they may contain answers that nobody gave. For each trusted file, the user's
// configuration directory contains a mark with the file's identity in the file system, which a file that replaces it does not
// have.

// making is the maximum time between the announcement of a file and its creation.
const making = time.Minute

// errUnknown is the error that mark returns for a file that cannot be distinguished from a replacement, and is therefore not
// trusted.
var errUnknown = errors.New("the file system cannot distinguish a file from its replacement: name the file, or add --trust")

// mark returns a string that describes a file without its contents: its identity, whether other users can write it or its
// directory, and the target of a symbolic link.
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

// of returns the path of the file that contains a file's mark.
func (s *Store) of(folder, path string) (string, error) {
	dir, err := real(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(filepath.Join(dir, filepath.Base(path))))
	return filepath.Join(filepath.Dir(s.file), folder, fmt.Sprintf("%x.json", name[:16])), nil
}

// Callers returns the path of the file with the tokens that allow callers to use a project's server.
func (s *Store) Callers(project string) (string, error) {
	return s.of("callers", filepath.Join(project, "tokens"))
}

// Make announces that this process will create a file, so that other processes trust the file from the start.
func (s *Store) Make(file string) error { return s.keep(file, time.Now().UTC().Format(time.RFC3339)) }

// Believe marks a file as trusted. It is called if a program of this user has created the file, or the user has agreed.
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

// Believed reports whether a file is the same one that was marked.
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

// Foreign returns the reason why a file next to a database, such as its log, cannot belong to the database. It returns "" if the
// file can belong to it or does not exist.
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

// tracked reports whether git tracks a file. It reads the index itself, because git would run programs named in the checkout's
// configuration.
func tracked(file string) bool {
	file, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if text, err := regular.Read(git, regular.Config); err == nil { // in a linked work tree, .git is a file
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

// tokens returns the path of the file with the user's tokens for a server. Only the user can read the file. Each server has its
// own file, so renewing a token does not replace another one.
func (s *Store) tokens(project, server string) (string, error) {
	project, err := real(project)
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(project + "\x00" + server))
	return filepath.Join(filepath.Dir(s.file), "tokens", fmt.Sprintf("%x.json", name[:16])), nil
}

// Tokens returns the tokens last stored with SetTokens, if there are any.
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
