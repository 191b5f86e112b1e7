package layers

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ceilings for the main module's size. A release lowers them to what it has; a change that needs more says what it removes.
const (
	mostLines    = 120_600 // of product code: without extras, examples, tests, and what exists for tests
	mostFolders  = 25      // at the root
	mostPackages = 35      // that programs may import, outside x
)

// apart are the folders whose code is no product code of the main module.
var apart = []string{"examples", "x", "internal/test", "internal/bench", "testdata"}

func TestSize(t *testing.T) {
	root := filepath.Join("..", "..")
	lines, folders := 0, 0
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		switch {
		case e.IsDir() && name != "." && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.IsDir():
			if name != "." && !strings.Contains(name, "/") && name != "dist" && name != "bin" { // which make writes
				folders++
			}
			if slices.Contains(apart, name) || e.Name() == "testdata" {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for _, p := range load(t) {
		if name, _ := local(p.ImportPath); public(p) && !strings.HasPrefix(name, "x/") {
			packages++
		}
	}
	t.Logf("%d lines, %d folders at the root, %d packages", lines, folders, packages)
	for _, one := range []struct {
		what      string
		got, most int
	}{{"lines of product code", lines, mostLines}, {"folders at the root", folders, mostFolders}, {"public packages outside x", packages, mostPackages}} {
		if one.got > one.most {
			t.Errorf("%d %s, at most %d: remove as much as the change adds", one.got, one.what, one.most)
		}
	}
}
