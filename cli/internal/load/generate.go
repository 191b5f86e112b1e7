package load

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overlaid is the name of the main package, or of the additional file in a package main, that exists only in the overlay.
const overlaid = "stone_main_overlay"

// files returns the paths of the package's Go files.
func (b *builder) files() []string {
	var out []string
	for _, name := range slices.Concat(b.pkg.GoFiles, b.pkg.CgoFiles) {
		out = append(out, filepath.Join(b.pkg.Dir, name))
	}
	return out
}

// exports returns an error if the package has no Pipeline. A package that cannot be parsed is accepted, because the compiler
// reports syntax errors better.
func (b *builder) exports() error {
	found := false
	for _, path := range b.files() {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil
		}
		switch declared(f, "Pipeline") {
		case token.TYPE:
			return refuse("%s: Pipeline is a type: make it a variable or a function that holds or returns a stone.Ashlar", b.arg)
		case token.FUNC, token.VAR, token.CONST:
			found = true
		}
		b.calls = b.calls || slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(modulePath+"/call") })
	}
	if !found {
		return refuse("%s does not export Pipeline: declare func Pipeline() stone.Ashlar, or a variable Pipeline", b.arg)
	}
	return nil
}

// declared returns the kind of declaration with which a file declares a name at package level, such as a variable or a function.
func declared(f *ast.File, name string) token.Token {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == name {
				return token.FUNC
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				of, is := spec.(*ast.TypeSpec)
				values, are := spec.(*ast.ValueSpec)
				if is && of.Name.Name == name || are && slices.ContainsFunc(values.Names, func(id *ast.Ident) bool { return id.Name == name }) {
					return d.Tok
				}
			}
		}
	}
	return token.ILLEGAL
}

// generate writes the files of the overlay. It returns the overlay, which maps file names to the files that replace them, and the
// package to build.
func (b *builder) generate() (replace map[string]string, target string, err error) {
	replace = map[string]string{}
	imports, pipeline := fmt.Sprintf("import stonepipeline %q\n", b.pkg.ImportPath), "stonepipeline.Pipeline"
	if b.command {
		imports, pipeline = "", "stonecli.FromArgument"
	}
	var path string
	switch {
	case b.pkg.Name == "main" && !b.command:
		imports, pipeline = "", "Pipeline"
		path, target = filepath.Join(b.pkg.Dir, overlaid+".go"), b.path
		if err := b.setMainAside(replace); err != nil {
			return nil, "", err
		}
	case b.pkg.Module.Main:
		path = filepath.Join(b.pkg.Dir, overlaid, "main.go")
		target = b.pkg.ImportPath + "/" + overlaid
	default:
		// The package belongs to a dependency, so its directory is in the module cache. The program is therefore placed in the
		// working directory.
		here, err := filepath.Abs(b.dir)
		if err != nil {
			return nil, "", err
		}
		path, target = filepath.Join(here, overlaid, "main.go"), "./"+overlaid
	}
	arguments := pipeline
	linked := b.link.Always
	if b.calls {
		linked = slices.Concat(linked, b.link.Calls)
	}
	for i, path := range linked {
		imports += fmt.Sprintf("import stonepart%d %q\n", i, path)
		arguments += fmt.Sprintf(", stonepart%d.Part", i)
	}
	capabilities, provided, err := b.capabilities()
	if err != nil {
		return nil, "", err
	}
	source := fmt.Sprintf("package main\n\nimport stonecli \"%s/cli\"\n%s%s\nfunc main() { stonecli.Main(%s%s) }\n", modulePath, imports, capabilities, arguments, provided)
	replace[path] = filepath.Join(b.tmp, "main.go.txt")
	return replace, target, os.WriteFile(replace[path], []byte(source), 0o600)
}

// capabilities returns the imports and the arguments of Main that link the packages of capabilities.
func (b *builder) capabilities() (imports, arguments string, err error) {
	for i, name := range b.link.Capabilities {
		out, stderr, err := b.goTool("list", "-find", "-mod=readonly", "-json=ImportPath,Name", b.link.path(name))
		if err != nil {
			return "", "", refuse("the capability package %s cannot be loaded: %s", name, firstLine(stderr, err))
		}
		var of listed
		if err := json.Unmarshal(out, &of); err != nil {
			return "", "", refuse("the capability package %s cannot be loaded: cannot read the output of `go list`: %v", name, err)
		}
		if of.Name == "main" {
			return "", "", refuse("%s is a package main, which no other program can import: move its Pipeline into a package of its own", name)
		}
		imports += fmt.Sprintf("import stonecapability%d %q\n", i, of.ImportPath)
		arguments += fmt.Sprintf(", stonecli.Provide(%q, stonecapability%d.Pipeline)", name, i)
	}
	return imports, arguments, nil
}

// setMainAside overlays the files of a package main with copies in which the function main is renamed to "_". The function is
// compiled, so its imports count as used, but it is never called. All other bytes keep their positions, and a line directive
// names the original file, so messages contain the right positions.
func (b *builder) setMainAside(replace map[string]string) error {
	for i, path := range b.files() {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			continue // the compiler reports the error
		}
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "main" {
				at := fset.PositionFor(d.Name.Pos(), false).Offset
				copy(source[at:], "_   ")
				replace[path] = filepath.Join(b.tmp, fmt.Sprintf("aside%d.go.txt", i))
				if err := os.WriteFile(replace[path], append([]byte("//line "+path+":1:1\n"), source...), 0o600); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// workspace writes a go.work that replaces the user's module or workspace, and sets the build environment to use it.
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
		// The file is optional; if it cannot be read, it is treated as missing.
		b.sums, _ = os.ReadFile(strings.TrimSuffix(env.GOWORK, ".work") + ".work.sum")
	case env.GOMOD != "" && env.GOMOD != os.DevNull:
		fmt.Fprintf(&text, "use %q\n", filepath.Dir(env.GOMOD))
	case b.path != ".":
		return refuse("no directory %s, and no module here that may have such a package: name a directory with a Go package, or a plan", b.arg)
	default:
		return refuse("%s is not part of a module: run `go mod init` in its directory, and `go get %s`", b.arg, modulePath)
	}
	file := filepath.Join(b.tmp, "go.work")
	// Build removes GOTMPDIR, including what an interrupted build leaves there.
	b.env = append(os.Environ(), "GOWORK="+file, "GOTMPDIR="+b.tmp)
	if err := os.WriteFile(file+".sum", b.sums, 0o600); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

var goVersion = regexp.MustCompile(`\bgo(\d+\.\d+(?:\.\d+|rc\d+)?)`)

// copyWorkspace writes the contents of a go.work file, with its directory names made absolute.
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
