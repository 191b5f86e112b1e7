package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone"
)

// goTool runs the go command in a directory. An exit status is no error here:
// the caller interprets it.
func goTool(ctx context.Context, dir string, args ...string) (stdout, stderr string, exit int, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var status *exec.ExitError
	if errors.As(err, &status) && ctx.Err() == nil {
		return out.String(), errs.String(), status.ExitCode(), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), errs.String(), 0, err
}

func findModule(ctx context.Context, dir string) (Module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Module{}, err
	}
	out, errs, exit, err := goTool(ctx, abs, "list", "-m", "-json")
	if err != nil {
		return Module{}, err
	}
	var m struct{ Path, Dir string }
	if exit != 0 || json.Unmarshal([]byte(out), &m) != nil || m.Dir == "" {
		return Module{}, stone.Fail("no-module", "%s holds no Go module: name one with --dir (%s)", abs, firstLine(errs))
	}
	return Module{Path: m.Path, Dir: m.Dir}, nil
}

func listPackages(ctx context.Context, m Module) (Worklist, error) {
	out, errs, exit, err := goTool(ctx, m.Dir, "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Error", "./...")
	if err != nil {
		return Worklist{}, err
	}
	if exit != 0 {
		return Worklist{}, stone.Fail("no-packages", "go list: %s", firstLine(errs))
	}
	w := Worklist{Packages: []Package{}}
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir                              string
			GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
			Error                                        *struct{ Err string }
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return w, nil
		}
		if err != nil {
			return w, fmt.Errorf("go list: %w", err)
		}
		files := slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
		one := Package{Path: p.ImportPath, Dir: p.Dir, Files: files}
		if p.Error != nil {
			one.Error = firstLine(p.Error.Err)
		}
		w.Packages = append(w.Packages, one)
	}
}

func vet(ctx context.Context, p Package) (VetResult, error) {
	// With -trimpath, which GOFLAGS may say, a finding from the cache names the folder it was first found in.
	_, errs, exit, err := goTool(ctx, p.Dir, "vet", "-trimpath=false", ".")
	if err != nil || exit == 0 {
		return VetResult{}, err
	}
	var r VetResult
	for line := range strings.Lines(errs) {
		line = strings.TrimSpace(line)
		if broken, ok := strings.CutPrefix(line, "vet: "); ok {
			// The type checker gave up, so this is no finding of vet.
			r.BuildError = broken
		} else if line != "" && !strings.HasPrefix(line, "#") {
			r.Problems = append(r.Problems, line)
		}
	}
	if r.BuildError != "" {
		r.Problems = nil
	}
	return r, nil
}

// coverage matches the summary that "go test -cover" prints.
var coverage = regexp.MustCompile(`coverage: (?:([0-9.]+)% of statements|\[no statements\])`)

func test(ctx context.Context, p Package, full bool, limit time.Duration) (TestResult, error) {
	// Vetting is a check of its own here, and its findings are no failure to build.
	args := []string{"test", "-vet=off", "-cover", "-timeout", limit.String()}
	if !full {
		args = append(args, "-short")
	}
	out, errs, exit, err := goTool(ctx, p.Dir, append(args, ".")...)
	if err != nil {
		return TestResult{}, err
	}
	r := TestResult{Passed: exit == 0, Coverage: -1}
	r.HasTests = slices.ContainsFunc(p.Files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	if m := coverage.FindStringSubmatch(out); m != nil && m[1] != "" {
		if r.Coverage, err = strconv.ParseFloat(m[1], 64); err != nil {
			return r, fmt.Errorf("coverage of %s: %w", p.Path, err)
		}
	}
	switch {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		r.BuildError = firstLine(errs + "\n" + out)
	case exit != 0:
		r.Output = tail(out+errs, 20)
	}
	return r, nil
}

// marks matches comments that postpone work.
var marks = regexp.MustCompile(`\b(TODO|FIXME)\b.*`)

func readSource(_ context.Context, p Package) (SourceResult, error) {
	var r SourceResult
	for _, name := range p.Files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			r.Unparsed = append(r.Unparsed, firstLine(err.Error()))
		}
		if file == nil {
			continue
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				for i, line := range strings.Split(c.Text, "\n") {
					if m := marks.FindString(line); m != "" {
						r.Marks = append(r.Marks, fmt.Sprintf("%s:%d: %s", name, set.Position(c.Pos()).Line+i, m))
					}
				}
			}
		}
		if !strings.HasSuffix(name, "_test.go") && file.Name.Name != "main" {
			r.Undocumented = append(r.Undocumented, undocumented(file)...)
		}
	}
	return r, nil
}

// undocumented lists the exported names of a file that have no comment.
func undocumented(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				names = append(names, receiver(d)+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, undocumentedSpec(d, spec)...)
			}
		}
	}
	return names
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []string {
	var names []string
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		// A comment on the group speaks for its members.
		if d.Doc == nil && s.Doc == nil && s.Comment == nil {
			for _, n := range s.Names {
				if n.IsExported() {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	r := receiver(d)
	return r == "" || ast.IsExported(r)
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
