package layers

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Ceilings of the public API outside x. They only fall.
const (
	mostFields       = 1377 // exported fields of exported types
	mostUndocumented = 0    // names that no document, package comment or Example has
)

// TestDoors holds what a program can see: the exported fields, and the names that it finds nowhere but in a list.
func TestDoors(t *testing.T) {
	told := documented(t)
	fields := 0
	var unknown []string
	for _, p := range load(t) {
		name, _ := local(p.ImportPath)
		if !public(p) || strings.HasPrefix(name, "x/") {
			continue
		}
		for _, n := range exported(t, p.Dir) {
			if !told[n] {
				unknown = append(unknown, name+"."+n)
			}
		}
		for _, file := range files(t, p.Dir) {
			for _, decl := range file.Decls {
				if d, ok := decl.(*ast.GenDecl); ok {
					for _, spec := range d.Specs {
						if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
							fields += fieldsOf(s.Type)
						}
					}
				}
			}
		}
	}
	t.Logf("%d exported fields, %d names without a document", fields, len(unknown))
	if fields > mostFields {
		t.Errorf("%d exported fields, at most %d: make one a method, or leave it out", fields, mostFields)
	}
	if len(unknown) > mostUndocumented {
		t.Errorf("%d names are in no document, package comment or Example, at most %d: write where a program needs them, or make them internal:\n%s",
			len(unknown), mostUndocumented, strings.Join(unknown, "\n"))
	}
}

func fieldsOf(typ ast.Expr) (n int) {
	s, ok := typ.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

var word = regexp.MustCompile(`\w+`)

// documented returns the words of all documents, package comments, and Examples with the functions beside them.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	told := map[string]bool{}
	add := func(text string) {
		for _, w := range word.FindAllString(text, -1) {
			told[w] = true
		}
	}
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	above, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(append(pages, above...), filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		add(string(text))
	}
	for _, p := range load(t) {
		if !public(p) {
			continue
		}
		for _, file := range files(t, p.Dir) {
			if file.Doc != nil {
				add(file.Doc.Text())
			}
		}
		examples, err := filepath.Glob(filepath.Join(p.Dir, "example*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range examples {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			add(string(text))
		}
	}
	return told
}
