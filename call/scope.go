package call

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Scope limits the directories, programs and servers that a capability can reach. It only narrows: a nil list sets no limit,
// and an empty list denies everything.
type Scope struct {
	// FS lists the absolute paths of directories. All files below them may be used.
	FS FS `json:"fs"`
	// Process lists the absolute paths of programs that may be started.
	Process Process `json:"process"`
	// Net lists servers, such as "https://api.example.com" or "http://127.0.0.1:8080". The default port follows from the scheme.
	Net Net `json:"net"`
}

// Check returns an error if an entry of the scope is malformed.
func (s Scope) Check() error {
	for _, path := range slices.Concat([]string(s.FS), s.Process) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("scope: the path %q is not absolute", path)
		}
	}
	for _, server := range s.Net {
		u, err := url.Parse(server)
		if err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("scope: %q is not a server: want scheme, host and port as https://example.com:8443", server)
		}
	}
	return nil
}

// Unconfined returns an error if the scope does not allow program to be started without confinement: it limits directories or
// servers, or does not list the program. What is the kind of program for the error, such as "an engine".
func (s Scope) Unconfined(what, program string) error {
	if s.FS != nil || s.Net != nil {
		return fmt.Errorf("%s cannot be limited to directories and servers: leave fs and net out of its scope", what)
	}
	return s.Process.Check(program)
}

// FS lists directories.
type FS []string

// Resolve returns the absolute path of a file or directory without symbolic links, or an error if it is outside the directories.
// If the path does not exist, its directory is resolved.
func (f FS) Resolve(path string) (string, error) {
	path, err := realPath(path)
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
	return "", fmt.Errorf("%s is outside the directories in scope: %s", path, inScope(f))
}

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		return resolved, nil
	}
	if _, there := os.Lstat(path); there == nil {
		return "", err // a dangling link, through which a file could be created elsewhere
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Process lists programs.
type Process []string

// Check returns an error if the scope does not allow the program, an absolute path, to be started. A symbolic link is in scope
// only if the list contains its own path.
func (p Process) Check(program string) error {
	if !filepath.IsAbs(program) {
		return fmt.Errorf("the program %q is not an absolute path", program)
	}
	if p == nil || slices.ContainsFunc(p, func(in string) bool { return filepath.Clean(in) == filepath.Clean(program) }) {
		return nil
	}
	return fmt.Errorf("the program %s is not in scope: %s", program, inScope(p))
}

// Net lists servers.
type Net []string

// Check returns an error if the scheme, host and port of u do not belong to a server in scope.
func (n Net) Check(u *url.URL) error {
	if n == nil {
		return nil
	}
	for _, server := range n {
		if in, err := url.Parse(server); err == nil && origin(in) == origin(u) {
			return nil
		}
	}
	return fmt.Errorf("the server %s is not in scope: %s", origin(u), inScope(n))
}

// Follow returns an error if a redirect from the URL asked to the URL to must not be followed: the server of to must be in scope
// or, if n is nil, be the server of asked.
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

func inScope(all []string) string {
	if len(all) == 0 {
		return "the list is empty"
	}
	return strings.Join(all, ", ")
}
