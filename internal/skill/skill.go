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
)

// Name is that of the skill, and of the folder that it is installed in.
const Name = "designing-ashlars"

//go:embed designing-ashlars
var bundle embed.FS

// An InstalledError says that there is an installation already, which was left as
// it is.
type InstalledError struct {
	Path    string   // of the installation
	Differs []string // files that are other than in this bundle, missing or foreign
}

// Error returns where it is and whether it is the same.
func (e *InstalledError) Error() string {
	if len(e.Differs) == 0 {
		return "already installed in " + e.Path + ", as this version has it"
	}
	return fmt.Sprintf("already installed in %s, but not as this version has it: %s", e.Path, strings.Join(e.Differs, ", "))
}

// Install puts the bundle below a directory, which is made if there is none, and
// returns the path of its folder. An installation that is there is replaced as a
// whole if force is set; otherwise the error is an *InstalledError. What is there
// and no installation of this skill is never replaced. If Install fails nothing has
// changed.
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
	// A folder aside becomes the installation when it is whole.
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

// inspect compares an installation with the bundle; nil is that there is none.
func inspect(path string) (*InstalledError, error) {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s is in the way: %w", path, err)
	}
	head, err := os.ReadFile(filepath.Join(path, "SKILL.md"))
	if (err != nil || !strings.Contains(string(head), "name: "+Name+"\n")) && len(entries) > 0 {
		return nil, fmt.Errorf("%s is in the way and no installation of this skill: move it elsewhere", path)
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

// files reads the regular files below a directory, by their paths in it.
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
