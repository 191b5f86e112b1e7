// Package trust records, in the user's configuration directory, which files of a project, and which tool definitions of the
// project's servers, the user trusts. A file or definition that has changed is no longer trusted. The package also stores the
// user's tokens for the servers.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/stonelayer/stone/internal/regular"
)

// A Store is the file that lists the trusted projects. It contains digests of files, but no contents.
type Store struct{ file string }

// Open returns the store of the user who runs this process.
func Open() (*Store, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("trust is kept in the user's configuration directory, which is unknown: %w", err)
	}
	return &Store{filepath.Join(dir, "stone", "trust.json")}, nil
}

// book maps a project's directory and a file's path to the file's digest.
type book map[string]map[string]string

func (s *Store) read() (book, error) {
	data, err := regular.Read(s.file, regular.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return book{}, nil
	}
	b := book{}
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the trusted projects from %s: %w", s.file, err)
	}
	if b == nil { // the file contains null
		b = book{}
	}
	return b, nil
}

// write replaces a whole file. If two processes write at the same time, an entry may be lost, and the user is asked again.
func write(file string, content any) error {
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(file)+"-*") // created with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Changed returns the files of a project that are not trusted in their current form, and reports whether the project is known.
func (s *Store) Changed(project string, files []string) (changed []string, known bool, err error) {
	b, err := s.read()
	if err != nil {
		return nil, false, err
	}
	project, now, err := digests(project, files)
	if err != nil {
		return nil, false, err
	}
	trusted, known := b[project]
	for _, file := range slices.Sorted(maps.Keys(now)) {
		if trusted[file] != now[file] {
			changed = append(changed, file)
		}
	}
	return changed, known, nil
}

// Add trusts files of a project in their current form, in addition to the files already trusted.
func (s *Store) Add(project string, files []string) error {
	b, err := s.read()
	if err != nil {
		return err
	}
	project, now, err := digests(project, files)
	if err != nil {
		return err
	}
	if b[project] == nil {
		b[project] = map[string]string{}
	}
	maps.Copy(b[project], now)
	return write(s.file, b)
}

// Remove removes a project, and reports whether it was trusted.
func (s *Store) Remove(project string) (bool, error) {
	b, err := s.read()
	if err != nil {
		return false, err
	}
	if project, err = real(project); err != nil {
		return false, err
	}
	if b[project] == nil {
		return false, nil
	}
	delete(b, project)
	return true, write(s.file, b)
}

// All returns the projects that have trusted files.
func (s *Store) All() ([]string, error) {
	b, err := s.read()
	return slices.Sorted(maps.Keys(b)), err
}

// real resolves the symbolic links in a path. The path need not exist.
func real(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if path, err := filepath.EvalSymlinks(dir); err == nil {
		dir = path
	}
	return dir, nil
}

// digests returns the project's directory, and the digests of files by their paths within it.
func digests(project string, files []string) (dir string, of map[string]string, err error) {
	if dir, err = real(project); err != nil {
		return "", nil, err
	}
	of = map[string]string{}
	for _, file := range files {
		digest, err := digest(file)
		if err != nil {
			return "", nil, err
		}
		path, err := real(file)
		if err == nil {
			path, err = filepath.Rel(dir, path)
		}
		if err != nil {
			return "", nil, err
		}
		of[filepath.ToSlash(path)] = digest
	}
	return dir, of, nil
}

func digest(file string) (string, error) {
	f, err := regular.Open(file, regular.Source)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
