package layers

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the source has into testdata")

// public reports whether programs outside the module can import a package.
func public(p pkg) bool {
	return p.Name != "main" && !slices.Contains(strings.Split(p.ImportPath, "/"), "internal") && !strings.Contains(p.ImportPath, "/examples")
}

// files parses the files of a package that are no tests, by their names.
func files(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = file
	}
	return out
}

// recorded compares lines with a file of testdata, which -update writes.
func recorded(t *testing.T, name, rule string, lines []string) {
	t.Helper()
	slices.Sort(lines)
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, l := range lines {
		if !slices.Contains(known, l) {
			t.Errorf("new: %s: %s", l, rule)
		}
	}
	for _, l := range known {
		if !slices.Contains(lines, l) {
			t.Errorf("gone: %s: take it out of %s with -update", l, path)
		}
	}
}

// TestExportedNames holds the number of names that each package exports. It may only fall: a name that is
// added takes the place of another, or says in its commit who needs it.
func TestExportedNames(t *testing.T) {
	var lines []string
	for _, p := range load(t) {
		if public(p) {
			name, _ := local(p.ImportPath)
			lines = append(lines, fmt.Sprintf("%s %d", name, len(exported(t, p.Dir))))
		}
	}
	recorded(t, "names.txt", "a package may export fewer names than before, not more", lines)
}

// TestAssertedInterfaces lists the interfaces without a name to which values are converted: contracts that
// nobody declares. The list may only shrink.
func TestAssertedInterfaces(t *testing.T) {
	var lines []string
	for _, p := range load(t) {
		for name, file := range files(t, p.Dir) {
			ast.Inspect(file, func(n ast.Node) bool {
				var typ ast.Expr
				switch n := n.(type) {
				case *ast.TypeAssertExpr:
					typ = n.Type
				case *ast.CaseClause:
					for _, e := range n.List {
						if i, ok := e.(*ast.InterfaceType); ok {
							typ = i
						}
					}
				case *ast.IndexExpr: // errors.AsType[interface{ … }]
					typ = n.Index
				}
				i, ok := typ.(*ast.InterfaceType)
				if !ok || len(i.Methods.List) == 0 {
					return true
				}
				var text bytes.Buffer
				if err := format.Node(&text, token.NewFileSet(), i); err != nil {
					t.Fatal(err)
				}
				of, _ := local(p.ImportPath)
				lines = append(lines, of+"/"+name+" "+strings.Join(strings.Fields(text.String()), " "))
				return true
			})
		}
	}
	recorded(t, "asserted.txt", "declare the interface where it is implemented, and give it a name", lines)
}

// TestNoInternalTypesInSignatures: what a program can call takes and returns only what it can name.
func TestNoInternalTypesInSignatures(t *testing.T) {
	for _, p := range load(t) {
		if !public(p) {
			continue
		}
		for name, file := range files(t, p.Dir) {
			inside := map[string]string{}
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(strings.Split(path, "/"), "internal") {
					continue
				}
				called := path[strings.LastIndex(path, "/")+1:]
				if spec.Name != nil {
					called = spec.Name.Name
				}
				inside[called] = path
			}
			for what, typ := range signatures(file) {
				ast.Inspect(typ, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && inside[x.Name] != "" {
							t.Errorf("%s/%s: %s has the type %s.%s of %s, which no program can name", p.ImportPath, name, what, x.Name, s.Sel.Name, inside[x.Name])
						}
					}
					return true
				})
			}
		}
	}
}

// signatures returns the types that the exported declarations of a file are made of, by their names.
func signatures(file *ast.File) map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Recv != nil && !exportedReceiver(d.Recv.List[0].Type) {
				continue
			}
			out[d.Name.Name] = d.Type
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					if s.Type != nil && slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.IsExported() }) {
						out[s.Names[0].Name] = s.Type
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() && !s.Assign.IsValid() { // an alias is the name of what it stands for
						maps.Copy(out, parts(s.Name.Name, s.Type))
					}
				}
			}
		}
	}
	return out
}

func exportedReceiver(typ ast.Expr) bool {
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// parts returns the types of what a type exports: of a struct, the exported fields.
func parts(name string, typ ast.Expr) map[string]ast.Node {
	s, ok := typ.(*ast.StructType)
	if !ok {
		return map[string]ast.Node{name: typ}
	}
	out := map[string]ast.Node{}
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				out[name+"."+n.Name] = f.Type
			}
		}
		if len(f.Names) == 0 {
			out[name] = f.Type // embedded
		}
	}
	return out
}
