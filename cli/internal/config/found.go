package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
)

// Files returns the files of a .stone directory that configure the project: stone.edn or stone.json, and settings.json.
func Files(dir string) (found []string) {
	for _, name := range append(slices.Clone(files), settingsFile) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			found = append(found, path)
		}
	}
	return found
}

// ProjectFiles returns the files within the project that make up its configuration or to which configured commands refer:
// programs, scripts, and files named by an argument or by a word in an argument. Such a name may be relative to the project, to
// the program's directory, or to a directory in the arguments. Files with any extension can be programs.
func (c *Config) ProjectFiles() (found []string) {
	add := func(path string) (isDir bool) {
		rel, err := filepath.Rel(c.Dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			return false
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && !slices.Contains(found, path) {
			found = append(found, path)
		}
		return err == nil && info.IsDir()
	}
	for _, file := range c.reached.Files {
		add(file)
	}
	for _, argv := range c.reached.Argvs {
		from := []string{c.Dir, kinds.Within(c.Dir, argv.Dir)}
		words := wordsOf(argv.Words)
		for i := 0; i < len(from) && i < maxFrom; i++ {
			for _, word := range words {
				path := kinds.Within(from[i], word)
				if add(path) && !slices.Contains(from, path) {
					from = append(from, path)
				}
			}
		}
	}
	return found
}

// maxFrom is the maximum number of base directories for paths in a command.
const maxFrom = 32

// wordsOf returns the strings in a command that may be paths: each argument, its shell words, and its parts between shell
// operators.
func wordsOf(argv []string) (words []string) {
	const blank, signs = " \t\n", "`;&|()<>"
	for _, arg := range argv {
		words = append(words, arg)
		var word []rune
		end := func() {
			words = append(words, string(word))
			word = nil
		}
		quote := rune(0)
		for _, r := range arg {
			switch {
			case r == quote:
				quote = 0
			case quote == 0 && (r == '\'' || r == '"'):
				quote = r
			case quote == 0 && strings.ContainsRune(blank+signs, r):
				end()
			case r != '\\':
				word = append(word, r)
			}
		}
		end()
		words = append(words, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(blank+signs+"'\"=$,:", r) })...)
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" })
}

// Indexes returns the index files of the project and its capabilities, each once.
func (c *Config) Indexes() []string {
	all := slices.Clone(c.reached.Indexes)
	if index := c.Search.Index; !redact.IsDatabase(index) {
		all = append(all, index)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Reaches returns lines that tell the user what the configuration would do: one for each program that capabilities, checks and
// servers would start; one for each address to which data would be sent, with the keys; and one for each other file, variable or
// key that a field names.
func (c *Config) Reaches() (lines []string) {
	type place struct{ of, at string }
	said := map[place]bool{}
	say := func(what, at string, secrets []kinds.Secret, of ...string) {
		for _, of := range of {
			said[place{of, at}] = true
			for _, s := range secrets {
				said[place{of, s.Place()}] = true
			}
		}
		lines = append(lines, kinds.Contact{Does: what, At: at, Secrets: secrets}.String())
	}
	for _, r := range slices.Concat(c.Capabilities, c.Tools) {
		of := []string{"capability " + r.ID, "provider " + r.Provider, "server " + r.Server}
		switch {
		case r.Package != "":
			say(r.ID+" compiles and runs the Go package", r.Package, r.Secrets, of...)
		case len(r.Command) > 0:
			say(r.ID+" starts the program", kinds.Whole(r.Command), r.Secrets, of...)
		case kinds.Host(r.At) != "":
			say(r.ID+" sends requests to", kinds.Host(r.At), r.Secrets, of...)
		case len(r.Secrets) > 0:
			say(r.ID+" uses keys", "", r.Secrets, of[0])
		}
	}
	for _, one := range c.reached.Contacts {
		say(one.Does, one.At, one.Secrets, one.Of)
	}
	for _, p := range c.reached.Places {
		if !said[place{p.Of, p.At}] {
			say(p.In+" "+p.Does, p.At, nil)
		}
	}
	return lines
}
