// Package first contains the projects that stone init creates: an agent, a plan and an evaluation.
package first

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed all:files
var files embed.FS

// Kinds lists the kinds of projects that Write can create.
var Kinds = []string{"agent", "plan", "eval"}

// Write creates a project of the given kind in a directory. If the project needs a go.mod and neither the directory nor a parent
// has one, Write creates it too. It returns the sorted names of the created files. If any of them already exists, nothing is
// written.
func Write(dir, kind string) (written []string, err error) {
	root := "files/" + kind
	contents := map[string][]byte{}
	err = fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, root+"/"), ".txt") // the suffix keeps Go from compiling embedded .go files
		written = append(written, name)
		contents[name], err = files.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if kind == "agent" && !inModule(whole) {
		written = append(written, "go.mod")
		contents["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo 1.26\n", moduleName(filepath.Base(whole)))
	}
	var there []string
	for _, name := range written {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			there = append(there, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(there) > 0 {
		return nil, fmt.Errorf("already present: %s: nothing was written; use an empty directory", strings.Join(there, ", "))
	}
	for _, name := range written {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
		if err := writeNew(path, contents[name]); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// writeNew writes a new file. If the file already exists, it returns an error.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// inModule reports whether a directory is in a Go module.
func inModule(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}

var notInName = regexp.MustCompile(`[^a-z0-9._-]+`)

// moduleName returns a module path derived from the name of a directory.
func moduleName(dir string) string {
	if name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(dir), "-"), ".-_"); name != "" {
		return name
	}
	return "first"
}
