package config

import (
	"fmt"
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

// ProgramFiles returns the files within the project that its configuration names in the
// commands of programs: the programs themselves, scripts, and what else an argument names by
// its path. Plain data is left out, because it may change without doing anything.
func (c *Config) ProgramFiles() (found []string) {
	for _, argv := range c.argvs {
		for _, arg := range argv {
			for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;&|()<>=$,", r) }) {
				path := kinds.Within(c.Dir, word)
				rel, err := filepath.Rel(c.Dir, path)
				if err != nil || !filepath.IsLocal(rel) || isData[filepath.Ext(path)] {
					continue
				}
				if info, err := os.Stat(path); err == nil && !info.IsDir() && !slices.Contains(found, path) {
					found = append(found, path)
				}
			}
		}
	}
	return found
}

// isData has the extensions of files that no program executes.
var isData = map[string]bool{".csv": true, ".tsv": true, ".jsonl": true, ".log": true, ".txt": true, ".md": true, ".db": true}

// Reaches returns a line for each program that calls and checks would start, and each
// address that calls, servers and webhooks would reach, with the keys that it gets.
func (c *Config) Reaches() (lines []string) {
	named := map[*string]bool{} // the commands of capabilities
	for _, r := range slices.Concat(c.Capabilities, c.Tools) {
		line := ""
		switch {
		case r.Package != "":
			line = "compiles and runs the Go package " + r.Package
		case len(r.Command) > 0:
			named[&r.Command[0]] = true
			line = "starts the program " + whole(r.Command)
		case host(r.At) != "":
			line = "sends requests to " + host(r.At)
		case len(r.Secrets) > 0:
			line = "uses keys"
		default:
			continue
		}
		lines = append(lines, r.ID+" "+line+with(r.Secrets))
	}
	for _, argv := range c.argvs {
		if !named[&argv[0]] {
			lines = append(lines, "a check or a server starts the program "+whole(argv))
		}
	}
	if e := c.Search.Embedder; e != nil {
		lines = append(lines, "search sends documents and questions to "+host(e.Info().Endpoint)+with(c.Search.Secrets))
	}
	for _, w := range c.Webhooks {
		lines = append(lines, fmt.Sprintf("the webhook %s sends the questions and results of runs to %s%s", w.Name, host(w.URL), with(w.secrets)))
	}
	if line := c.Telemetry.Reaches(); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// host returns the scheme and the host of an address, or "" for anything else. The rest
// of an address may be a secret.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// whole returns a command with its arguments, as a shell would take them.
func whole(argv []string) string {
	var words []string
	for _, w := range argv {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`;&|()<>*?[]{}!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
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
