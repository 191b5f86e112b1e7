// Package scope bounds what a capability reaches of the world: directories, programs
// and servers. A scope only narrows; a nil list says nothing, an empty one denies
// everything.
package scope

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Scope is what a capability may reach.
type Scope struct {
	// FS are absolute directories. What lies in them may be used.
	FS FS `json:"fs"`
	// Process are absolute paths of programs that may be started.
	Process Process `json:"process"`
	// Net are servers, as "https://api.example.com" or "http://127.0.0.1:8080". The
	// port is that of the scheme if there is none.
	Net Net `json:"net"`
}

// Check says what is wrong with the scope itself.
func (s Scope) Check() error {
	for _, path := range slices.Concat([]string(s.FS), s.Process) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("scope: the path %q is not absolute", path)
		}
	}
	for _, server := range s.Net {
		u, err := url.Parse(server)
		if err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("scope: %q is no server: want scheme, host and port as https://example.com:8443", server)
		}
	}
	return nil
}

// Unconfined says why a program must not be started that is not held to directories
// and servers: the scope has some, or does not have the program. What is how to call
// it, as "an engine".
func (s Scope) Unconfined(what, program string) error {
	if s.FS != nil || s.Net != nil {
		return fmt.Errorf("%s cannot be held to directories and servers: leave fs and net out of its scope", what)
	}
	return s.Process.Check(program)
}

// FS lists directories.
type FS []string

// Resolve returns the absolute path of a file or directory without symbolic links,
// or an error if it is outside. What does not exist yet is judged by the directory
// that it would be in.
func (f FS) Resolve(path string) (string, error) {
	path, err := real(path)
	if err != nil {
		return "", err
	}
	if f == nil {
		return path, nil
	}
	for _, root := range f {
		if root, err := filepath.EvalSymlinks(root); err == nil {
			if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is outside of the directories in scope: %s", path, list(f))
}

func real(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		return resolved, nil
	}
	if _, there := os.Lstat(path); there == nil {
		return "", err // a link to nothing, through which something could be made elsewhere
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Process lists programs.
type Process []string

// Check says why a program must not be started. It is named by its absolute path;
// a symbolic link is in scope only by its own name.
func (p Process) Check(program string) error {
	if !filepath.IsAbs(program) {
		return fmt.Errorf("the program %q is not an absolute path", program)
	}
	if p == nil || slices.ContainsFunc(p, func(in string) bool { return filepath.Clean(in) == filepath.Clean(program) }) {
		return nil
	}
	return fmt.Errorf("the program %s is not in scope: %s", program, list(p))
}

// Net lists servers.
type Net []string

// Check says why a URL must not be asked: scheme, host and port must be those of a
// server in scope.
func (n Net) Check(u *url.URL) error {
	if n == nil {
		return nil
	}
	for _, server := range n {
		if in, err := url.Parse(server); err == nil && origin(in) == origin(u) {
			return nil
		}
	}
	return fmt.Errorf("the server %s is not in scope: %s", origin(u), list(n))
}

// Follow says why a redirect must not be followed: without a list of servers, to any other
// server than the one that was asked.
func (n Net) Follow(asked, to *url.URL) error {
	if n == nil && origin(asked) != origin(to) {
		return fmt.Errorf("a redirect from %s to %s: name both in scope.net to allow it", origin(asked), origin(to))
	}
	return n.Check(to)
}

func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port
}

func list(all []string) string {
	if len(all) == 0 {
		return "nothing is"
	}
	return strings.Join(all, ", ")
}
