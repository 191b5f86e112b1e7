package load

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// workspace writes a go.work that replaces the user's module or workspace, and
// points the environment of the build at it.
func (b *builder) workspace() error {
	out, stderr, err := b.goTool("env", "-json", "GOMOD", "GOWORK", "GOVERSION")
	if err != nil {
		return refuse("%s: %s", b.arg, firstLine(stderr, err))
	}
	var env struct{ GOMOD, GOWORK, GOVERSION string }
	if err := json.Unmarshal(out, &env); err != nil {
		return refuse("%s: cannot read the output of `go env`: %v", b.arg, err)
	}
	var text strings.Builder
	if v := goVersion.FindStringSubmatch(env.GOVERSION); v != nil {
		fmt.Fprintf(&text, "go %s\n", v[1])
	}
	switch {
	case env.GOWORK != "" && env.GOWORK != "off":
		if err := b.copyWorkspace(&text, env.GOWORK); err != nil {
			return err
		}
		// The file is optional: one that cannot be read counts as missing.
		b.sums, _ = os.ReadFile(strings.TrimSuffix(env.GOWORK, ".work") + ".work.sum")
	case env.GOMOD != "" && env.GOMOD != os.DevNull:
		fmt.Fprintf(&text, "use %q\n", filepath.Dir(env.GOMOD))
	case b.path != ".":
		return refuse("no directory %s, and no module here that may have such a package: name a directory with a Go package, or a plan", b.arg)
	default:
		return refuse("%s is not part of a module: run `go mod init` in its directory, and `go get %s`", b.arg, modulePath)
	}
	file := filepath.Join(b.tmp, "go.work")
	// GOTMPDIR: Build removes it, with the remains of an interrupted build.
	b.env = append(os.Environ(), "GOWORK="+file, "GOTMPDIR="+b.tmp)
	if err := os.WriteFile(file+".sum", b.sums, 0o600); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

var goVersion = regexp.MustCompile(`\bgo(\d+\.\d+(?:\.\d+|rc\d+)?)`)

// copyWorkspace writes the contents of a go.work, with absolute directories.
func (b *builder) copyWorkspace(text *strings.Builder, file string) error {
	out, stderr, err := b.goTool("work", "edit", "-json", file)
	if err != nil {
		return refuse("%s: %s", file, firstLine(stderr, err))
	}
	type module struct{ Path, Version string }
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct{ Old, New module }
	}
	if err := json.Unmarshal(out, &work); err != nil {
		return refuse("%s: cannot read the output of `go work edit`: %v", file, err)
	}
	absolute := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(file), path)
	}
	for _, u := range work.Use {
		fmt.Fprintf(text, "use %q\n", absolute(u.DiskPath))
	}
	for _, r := range work.Replace {
		if r.New.Version == "" {
			r.New.Path = absolute(r.New.Path)
		}
		fmt.Fprintf(text, "replace %q %s => %q %s\n", r.Old.Path, r.Old.Version, r.New.Path, r.New.Version)
	}
	return nil
}
