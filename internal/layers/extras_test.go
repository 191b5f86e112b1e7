package layers

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// users are the packages outside x that may import an extra. An example that shows one goes with it.
var users = []string{"cli/all", "cmd/stone", "examples/..."}

// common are packages that extras share. Nothing else imports them.
const common = "x/internal"

// triers are the packages whose tests use extras, because they test what programs do with them, evaluate
// something, or need a language of expressions.
var triers = []string{"call", "cli", "cli/serve", "cli/internal/config", "internal/structured", "internal/test/hostile", "plan", "serve", "serve/api", "serve/internal/page", "x/eval", "x/lab", "x/retrieve"}

// extra returns the folder of an extra, such as x/retrieve, to which a package belongs.
func extra(importPath string) (string, bool) {
	name, ours := local(importPath)
	words := strings.Split(name, "/")
	if !ours || words[0] != "x" || len(words) < 2 {
		return "", false
	}
	return path.Join(words[:2]...), true
}

func TestNothingNeedsAnExtra(t *testing.T) {
	for _, p := range load(t) {
		name, _ := local(p.ImportPath)
		of, isExtra := extra(p.ImportPath)
		check := func(imports []string, may []string, who string) {
			for _, imported := range imports {
				if other, ok := extra(imported); ok && other != of && !(isExtra && other == common) && !slices.ContainsFunc(may, func(pattern string) bool { return fits(pattern, name) }) {
					t.Errorf("%s%s imports %s: let it come as a part of the program, as cli/all names it", who, p.ImportPath, imported)
				}
			}
		}
		check(p.Imports, users, "")
		check(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(users, triers), "a test of ")
	}
}

// Without the folder of an extra, and its entries in cli/all, everything else compiles.
func TestExtrasCanBeDeleted(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{} // the folders that go with each
	for _, p := range load(t) {
		if of, ok := extra(p.ImportPath); ok {
			if of != common {
				all[of] = append(all[of], p.Dir)
			}
		} else if name, _ := local(p.ImportPath); strings.HasPrefix(name, "examples/") {
			for _, imported := range p.Imports {
				if of, ok := extra(imported); ok {
					all[of] = append(all[of], p.Dir)
				}
			}
		}
	}
	if len(all) < 3 {
		t.Fatalf("extras: %v", all)
	}
	parts := filepath.Join(root, "cli", "all", "all.go")
	for of, dirs := range all {
		t.Run(path.Base(of), func(t *testing.T) {
			overlay := struct{ Replace map[string]string }{map[string]string{}}
			for _, dir := range dirs {
				names, err := filepath.Glob(filepath.Join(dir, "*.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					overlay.Replace[name] = ""
				}
			}
			text, entries := without(t, parts, module+"/"+of)
			if entries == 0 {
				t.Errorf("cli/all does not name %s", of)
			}
			dir := t.TempDir()
			overlay.Replace[parts] = filepath.Join(dir, "all.go")
			data, err := json.Marshal(overlay)
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string][]byte{"all.go": text, "overlay.json": data} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "list", "-export", "-overlay", filepath.Join(dir, "overlay.json"), "-f", "{{with .Error}}{{$.ImportPath}}: {{.}}{{end}}", "./...")
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
				t.Errorf("without %s: %v\n%s", of, err, out)
			}
		})
	}
}

// without returns the file of cli/all without the imports below a path and the entries that they have in a list, and the
// number of the entries.
func without(t *testing.T, name, below string) (text []byte, entries int) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	isGone := func(spec *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || imported != below && !strings.HasPrefix(imported, below+"/") {
			return false
		}
		called := path.Base(imported)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		gone[called] = true
		return true
	}
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			d.Specs = slices.DeleteFunc(d.Specs, func(s ast.Spec) bool { return isGone(s.(*ast.ImportSpec)) })
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if list, ok := n.(*ast.CompositeLit); ok {
			before := len(list.Elts)
			list.Elts = slices.DeleteFunc(list.Elts, func(e ast.Expr) bool {
				s, ok := e.(*ast.SelectorExpr)
				if !ok {
					return false
				}
				x, ok := s.X.(*ast.Ident)
				return ok && gone[x.Name]
			})
			entries += before - len(list.Elts)
		}
		return true
	})
	var b bytes.Buffer
	if err := format.Node(&b, set, file); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), entries
}
