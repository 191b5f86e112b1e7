package openapi

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const module = "github.com/stonelayer/stone"

// comments reads the comments on types in the source of the module.
type comments struct {
	root  string
	read  map[string]map[string]string   // comments by package and "Type" or "Type.Field"
	lists map[string]map[string][]string // values of a type's constants, by package and type
}

// of returns the comment on a type, or on one of its fields, as one paragraph.
func (c *comments) of(t reflect.Type, field string) string {
	name := t.Name()
	if field != "" {
		name += "." + field
	}
	return c.load(t.PkgPath())[name]
}

// constants returns the values of a type's constants in the order of declaration.
func (c *comments) constants(t reflect.Type) []string {
	c.load(t.PkgPath())
	return c.lists[t.PkgPath()][t.Name()]
}

func (c *comments) load(pkg string) map[string]string {
	if known, ok := c.read[pkg]; ok {
		return known
	}
	if c.read == nil {
		c.read, c.lists = map[string]map[string]string{}, map[string]map[string][]string{}
	}
	texts, lists := map[string]string{}, map[string][]string{}
	c.read[pkg], c.lists[pkg] = texts, lists
	below, ok := strings.CutPrefix(pkg, module)
	if !ok {
		return texts
	}
	names, _ := filepath.Glob(filepath.Join(c.root, below, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			continue // the compiler reports it
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				declared(g, texts, lists)
			}
		}
	}
	return texts
}

func declared(g *ast.GenDecl, texts map[string]string, lists map[string][]string) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil {
				doc = g.Doc
			}
			texts[s.Name.Name] = paragraph(doc)
			if st, ok := s.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						texts[s.Name.Name+"."+name.Name] = paragraph(f.Doc, f.Comment)
					}
				}
			}
		case *ast.ValueSpec:
			name, ok := s.Type.(*ast.Ident)
			if !ok || g.Tok != token.CONST || len(s.Values) != 1 {
				continue
			}
			if lit, ok := s.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if value, err := strconv.Unquote(lit.Value); err == nil {
					lists[name.Name] = append(lists[name.Name], value)
				}
			}
		}
	}
}

// paragraph returns the texts of comments, each without its line breaks.
func paragraph(groups ...*ast.CommentGroup) string {
	var out []string
	for _, g := range groups {
		if text := strings.TrimSpace(g.Text()); text != "" {
			doc := new(comment.Parser).Parse(text)
			out = append(out, strings.TrimSpace(string((&comment.Printer{TextWidth: -1}).Text(doc))))
		}
	}
	return strings.Join(out, " ")
}
