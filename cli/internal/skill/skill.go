// Package skill installs a skill that teaches coding agents to design ashlars with this library. The skill consists of an
// interview, a cheat sheet, patterns and the checks to run, and has the folder format that agents expect, with a SKILL.md at the
// top.
//
// The files of the skill are embedded. The tests of this package compile the skill's Go code, validate its pipelines, check its
// plan and run its tests against this version of the library.
package skill

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/regular"
)

// Name is the name of the skill and its folder.
const Name = "designing-ashlars"

//go:embed designing-ashlars
var bundle embed.FS

// An InstalledError is the error that Install returns if the skill is already installed. The installation is left unchanged.
type InstalledError struct {
	Path    string   // path of the installation
	Differs []string // files that differ from the embedded ones, are missing, or do not belong to the skill
}

// Error returns a message with the path of the installation and the files that differ.
func (e *InstalledError) Error() string {
	if len(e.Differs) == 0 {
		return "already installed in " + e.Path + ", identical to this version"
	}
	return fmt.Sprintf("already installed in %s, but different from this version: %s", e.Path, strings.Join(e.Differs, ", "))
}

// Install writes the skill below a directory, which it creates if necessary, and returns the path of the skill's folder. With
// force, an existing installation is replaced as a whole; otherwise the error is an *InstalledError. Anything else at this path
// is never replaced. If Install returns an error, nothing has changed.
func Install(dir string, force bool) (path string, err error) {
	path = filepath.Join(dir, Name)
	old, err := inspect(path)
	if err != nil {
		return path, err
	}
	if old != nil && !force {
		return path, old
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return path, err
	}
	// The files are written to a temporary folder, which becomes the installation once it is complete.
	aside, err := os.MkdirTemp(dir, "."+Name+"-")
	if err != nil {
		return path, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	fresh, former := filepath.Join(aside, "new"), filepath.Join(aside, "old")
	sub, err := fs.Sub(bundle, Name)
	if err != nil {
		return path, err
	}
	if err := os.CopyFS(fresh, sub); err != nil {
		return path, err
	}
	if old == nil {
		return path, os.Rename(fresh, path)
	}
	if err := os.Rename(path, former); err != nil {
		return path, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return path, errors.Join(err, os.Rename(former, path))
	}
	return path, nil
}

// inspect compares an installation with the embedded files and returns an *InstalledError that lists the differences. It returns
// nil if nothing exists at the path.
func inspect(path string) (*InstalledError, error) {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	head, err := regular.Read(filepath.Join(path, "SKILL.md"), regular.Config)
	if (err != nil || !strings.Contains(string(head), "name: "+Name+"\n")) && len(entries) > 0 {
		return nil, fmt.Errorf("%s exists and is not an installation of this skill: move it", path)
	}
	found := &InstalledError{Path: path}
	theirs, err := files(os.DirFS(path), ".")
	if err != nil {
		return nil, err
	}
	ours, err := files(bundle, Name)
	if err != nil {
		return nil, err
	}
	for name, text := range ours {
		if other, ok := theirs[name]; !ok || other != text {
			found.Differs = append(found.Differs, name)
		}
	}
	for name := range theirs {
		if _, ok := ours[name]; !ok {
			found.Differs = append(found.Differs, name)
		}
	}
	slices.Sort(found.Differs)
	return found, nil
}

// files returns the contents of the regular files below a directory, by relative path.
func files(fsys fs.FS, dir string) (map[string]string, error) {
	texts := map[string]string{}
	err := fs.WalkDir(fsys, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := fs.ReadFile(fsys, path)
		texts[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	return texts, err
}
