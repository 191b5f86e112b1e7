package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Name is the name of the directory.
const Name = ".stone"

// Find returns the path of the nearest directory .stone in dir or above it, or ""
// if there is none. It does not look above the user's home directory.
//
// The directory has code that will be run. So one that another user put there, as
// into /tmp, is refused.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // the search ends at the root
	}
	for {
		path := filepath.Join(dir, Name)
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is a file: want a directory with a Go package that has a Pipeline", path)
		case err == nil && !ours(info):
			return "", fmt.Errorf("%s belongs to another user: if you trust it, name it, as in stone run %s", path, path)
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if above := filepath.Dir(dir); dir != home && above != dir {
			dir = above
		} else {
			return "", nil
		}
	}
}

// files are the names that a configuration may have in a directory .stone.
var files = []string{"stone.edn", "stone.json"}

// fileIn returns the path of the configuration in a directory .stone, "" if there
// is none.
func fileIn(dir string) (string, error) {
	var found string
	for _, name := range files {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case found != "":
			return "", fmt.Errorf("both %s and %s exist: keep one", found, path)
		default:
			found = path
		}
	}
	return found, nil
}
