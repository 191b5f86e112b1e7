package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const modulePath = "github.com/stonelayer/stone"

// An Error reports that the program for a PIPELINE argument cannot be built. Its Reason is a single line.
type Error struct{ Reason string }

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Linked lists the packages that a program links in addition to its pipeline's. Packages in Always and Calls export a Part; see
// cli.Part.
type Linked struct {
	Always []string
	Calls  []string // linked if the package makes calls
	// Capabilities are the packages whose pipelines are capabilities, as written in the configuration: import paths, or
	// directories relative to Dir.
	Capabilities []string
	Dir          string
}

// path returns a name from Capabilities in a form that the go command accepts: an import path, or a directory joined with Dir.
func (l Linked) path(name string) string {
	if strings.HasPrefix(name, ".") {
		return filepath.Join(l.Dir, name)
	}
	return name
}

// A builder holds the state of one build.
type builder struct {
	ctx  context.Context
	link Linked
	arg  string // PIPELINE argument as given by the user
	dir  string // working directory of the go command
	path string // package in a form that the go command accepts
	tmp  string
	env  []string
	sums []byte // checksums of the user's workspace
	pkg  listed

	calls   bool // the package imports call
	command bool // the program takes a PIPELINE argument, like the command stone
}

// listed is the part of the output of `go list` for a package that a build needs.
type listed struct {
	Dir, ImportPath, Name string
	GoFiles, CgoFiles     []string
	Module                *struct {
		Path, Dir, GoVersion string
		Main                 bool
	}
	Error *struct{ Err string }
}

// Build builds a program for the pipeline of a package and returns it. The package is an import path, or a directory relative to
// the working directory. A program that has not changed is not linked again: it is kept in the build cache, whose size the go
// command limits. When ctx is done, Build stops and returns the cause of ctx. Any other error is an *Error or a file system
// error.
func Build(ctx context.Context, pipeline string, link Linked) (Program, error) {
	return (&builder{ctx: ctx, arg: pipeline, link: link}).run()
}

// Command builds the command stone together with the packages in link.Capabilities, which must not be empty, and returns the
// program.
func Command(ctx context.Context, link Linked) (Program, error) {
	return (&builder{ctx: ctx, arg: link.path(link.Capabilities[0]), link: link, command: true}).run()
}

func (b *builder) run() (Program, error) {
	ctx, pipeline := b.ctx, b.arg
	if err := b.locate(); err != nil {
		return "", err
	}
	if _, err := exec.LookPath("go"); err != nil {
		return "", refuse("building %s needs the go command, which is not in PATH: install Go from https://go.dev/dl", pipeline)
	}
	var err error
	if b.tmp, err = os.MkdirTemp("", "stone-"); err != nil {
		return "", err
	}
	var program Program
	for _, step := range []func() error{b.workspace, b.list, b.exports, func() (err error) { program, err = b.compile(); return err }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return program, errors.Join(err, os.RemoveAll(b.tmp))
}

// locate sets the builder's directory and path, depending on whether the argument is a directory or an import path.
func (b *builder) locate() error {
	info, err := os.Stat(b.arg)
	local := filepath.IsAbs(b.arg) || strings.HasPrefix(b.arg, ".")
	switch ext := filepath.Ext(b.arg); {
	case ext == ".edn" || ext == ".json":
		return refuse("%s is a plan, which needs no build: name a Go package with a Pipeline, such as ./examples/audit", b.arg)
	case err == nil && info.IsDir():
		b.dir, b.path = b.arg, "."
	case err == nil:
		return refuse("%s is a file: name the directory of a Go package, such as %s", b.arg, dotted(filepath.Dir(b.arg)))
	case local:
		return refuse("directory %s does not exist: name the directory of a Go package with a Pipeline", b.arg)
	case ext == ".go":
		return refuse("file %s does not exist: name the directory of a Go package with a Pipeline", b.arg)
	case strings.HasPrefix(b.arg, "-") || strings.Contains(b.arg, "..."):
		return refuse("%q does not name a single package: name one, such as ./examples/audit", b.arg)
	default:
		b.dir, b.path = ".", b.arg
	}
	return nil
}

func dotted(dir string) string {
	if dir == "." || filepath.IsAbs(dir) || strings.HasPrefix(dir, "..") {
		return dir
	}
	return "." + string(filepath.Separator) + dir
}

// goTool runs the go command and returns its standard output.
func (b *builder) goTool(args ...string) (stdout []byte, stderr string, err error) {
	cmd := exec.CommandContext(b.ctx, "go", args...)
	cmd.Dir = b.dir
	cmd.Env = b.env
	// If interrupted, the go command can remove its own files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	stdout, err = cmd.Output()
	return stdout, errs.String(), err
}

// list looks up the package, and Stone's root package as its module sees it; the build then uses the checksums of that module.
// Before that, no file contains the checksums of modules that only Stone needs. The checksum database is not used, because it
// requires network access; checksums recorded without it are discarded.
func (b *builder) list() error {
	env := b.env
	b.env = append(env[:len(env):len(env)], "GOSUMDB=off")
	defer func() { b.env = env }()
	out, stderr, err := b.goTool("list", "-e", "-find", "-mod=readonly", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,Module,Error", b.path, modulePath)
	if err != nil {
		return refuse("%s: %s", b.arg, firstLine(stderr, err))
	}
	var stone listed
	dec := json.NewDecoder(bytes.NewReader(out))
	if err := errors.Join(dec.Decode(&b.pkg), dec.Decode(&stone)); err != nil && b.pkg.ImportPath != modulePath {
		return refuse("%s: cannot read the output of `go list`: %v", b.arg, err)
	}
	switch {
	case b.pkg.Error != nil && len(b.pkg.GoFiles)+len(b.pkg.CgoFiles) == 0:
		return refuse("no Go package %s: %s", b.arg, firstLine(b.pkg.Error.Err, nil))
	case b.pkg.ImportPath == modulePath:
		return refuse("%s does not export Pipeline: declare func Pipeline() stone.Ashlar, or a variable Pipeline", b.arg)
	case b.pkg.Module == nil:
		return refuse("%s is not part of a module: run `go mod init` in its directory", b.arg)
	case stone.Module == nil:
		return refuse("the module %s does not require %s: run `go get %s` in it", b.pkg.Module.Path, modulePath, modulePath)
	}
	if own, needed := b.pkg.Module.GoVersion, version.Lang("go"+stone.Module.GoVersion); own != "" && version.Compare("go"+own, needed) < 0 {
		// With an older language version, the compiler would only report errors of type inference.
		needed = strings.TrimPrefix(needed, "go")
		return refuse("go.mod of the module %s says go %s: Stone needs at least go %s: run `go mod edit -go=%s` in it", b.pkg.Module.Path, own, needed, needed)
	}
	sums, err := os.ReadFile(filepath.Join(stone.Module.Dir, "go.sum"))
	if err != nil {
		return refuse("the module %s has no go.sum: %v", modulePath, err)
	}
	return os.WriteFile(filepath.Join(b.tmp, "go.work.sum"), slices.Concat(b.sums, sums), 0o600)
}

// compile builds the program from the package and from a main function that exists only in the overlay.
func (b *builder) compile() (Program, error) {
	replace, target, err := b.generate()
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.tmp, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	// Only "go run" keeps the program in the build cache. The program that it runs is "go version", which prints the name of the
	// file.
	for range 3 { // the cached file may be replaced meanwhile
		out, stderr, err := b.goTool("run", "-mod=readonly", "-buildvcs=false", "-overlay", file, "-exec", "go version", target)
		if err != nil {
			return "", b.compileError(stderr, err)
		}
		name, _, _ := strings.Cut(string(out), ": go")
		if _, err := os.Stat(name); err == nil {
			return Program(name), nil
		}
		// A newly linked program is first run from a temporary file, and then cached.
	}
	return "", refuse("%s: the go command did not keep the program in its build cache: check the directory that `go env GOCACHE` prints", b.arg)
}
