package config

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/kinds"
)

// Files returns the files of a directory .stone that configure the project: stone.edn
// or stone.json, and settings.json.
func Files(dir string) (found []string) {
	for _, name := range append(slices.Clone(files), settingsFile) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			found = append(found, path)
		}
	}
	return found
}

// PipelineFiles returns the files of the project's pipeline: its plan, or the files in
// the directory of its package except the database.
func PipelineFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var found []string
	for _, e := range entries {
		name := e.Name()
		if e.Type().IsRegular() && name != ".gitignore" && !strings.HasPrefix(name, "stone.db") || e.Type()&fs.ModeSymlink != 0 {
			found = append(found, filepath.Join(path, name))
		}
	}
	return found, err
}

// Reaches returns a line for each program that calls would start and each address
// that they would ask, with the keys that it gets.
func (c *Config) Reaches() (lines []string) {
	for _, r := range slices.Concat(c.Capabilities, c.Tools) {
		u, err := url.Parse(r.At)
		line := ""
		switch {
		case r.Package != "":
			line = "compiles and runs the Go package " + r.Package
		case r.Program:
			line = "starts the program " + r.At
		case err == nil && u.Host != "":
			line = "sends requests to " + u.Scheme + "://" + u.Host
		case len(r.Secrets) > 0:
			line = "uses keys"
		default:
			continue
		}
		lines = append(lines, r.ID+" "+line+with(r.Secrets))
	}
	return lines
}

func with(secrets []kinds.Secret) string {
	var keys []string
	for _, s := range secrets {
		if s.File != "" {
			keys = append(keys, "the file "+kinds.Shown(s.File))
		} else {
			keys = append(keys, "$"+s.Env)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf(", with the key in %s", strings.Join(keys, " and in "))
}
