package expr

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/types"

	"github.com/stonelayer/stone/schema"
)

// Fits compares the program with what is known of its variables: schemas by path, as
// "call.input". A nil schema is ignored. The error is an *Error about the first field that
// no value of a schema has, or the first use that does not fit the type of a field. A field
// within has(…) may be missing.
func (p *Program) Fits(schemas map[string]*schema.Schema) error {
	world, err := theWorld()
	if err != nil {
		return err
	}
	f := fitting{schemas: schemas, locate: p.locate, tree: ast.Copy(p.checked)}
	f.walk(f.tree.Expr(), nil)
	if f.fault != nil {
		return f.fault
	}
	for _, name := range p.variables {
		f.fields = append(f.fields, decls.NewVariable(name, types.DynType))
	}
	checked, err := world.check(f.tree, common.NewStringSource("", ""), f.fields)
	if err != nil {
		return err
	}
	if t := checked.GetType(checked.Expr().ID()); p.result == Bool && t.Kind() != types.BoolKind && t.Kind() != types.DynKind {
		return &Error{Line: 1, Column: 1, Reason: "must be true or false, is " + cel.FormatCELType(t)}
	}
	return nil
}

// A fitting replaces the fields of known types, in a copy of an expression, by variables
// of these types.
type fitting struct {
	schemas map[string]*schema.Schema
	locate  func(node int64) common.Location
	tree    *ast.AST
	fields  []*decls.VariableDecl
	fault   *Error
}

// walk visits an expression; bound are the variables of the macros around it.
func (f *fitting) walk(e ast.Expr, bound []string) {
	if f.fault != nil {
		return
	}
	switch e.Kind() {
	case ast.SelectKind, ast.IdentKind:
		if path := fieldPath(e); path != nil && !slices.Contains(bound, path[0]) {
			f.field(e, path)
			return
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		f.walk(c.IterRange(), bound)
		f.walk(c.AccuInit(), bound)
		after := append(slices.Clip(bound), c.AccuVar())
		inside := append(slices.Clip(after), c.IterVar(), c.IterVar2())
		f.walk(c.LoopCondition(), inside)
		f.walk(c.LoopStep(), inside)
		f.walk(c.Result(), after)
		return
	}
	for _, child := range children(e) {
		f.walk(child, bound)
	}
}

// fieldPath returns the names of a field, as [call input text]; nil if e is no field of a
// variable, or one whose presence is tested.
func fieldPath(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{strings.TrimPrefix(e.AsIdent(), ".")}
	case ast.SelectKind:
		s := e.AsSelect()
		if up := fieldPath(s.Operand()); up != nil && !s.IsTestOnly() {
			return append(up, s.FieldName())
		}
	}
	return nil
}

// field looks a field up in its schema.
func (f *fitting) field(e ast.Expr, path []string) {
	for prefix, s := range f.schemas {
		root := strings.Split(prefix, ".")
		if s == nil || len(path) < len(root) || !slices.Equal(path[:len(root)], root) {
			continue
		}
		for i := len(root); i < len(path); i++ {
			up, _ := s.At(path[len(root):i]...)
			if _, ok := up.At(path[i]); ok {
				continue
			}
			reason := strings.Join(path[:i], ".") + " has no field " + path[i]
			if up != nil {
				reason += hint(path[i], up.Properties())
			}
			f.fault = at(f.locate(e.ID()), reason)
			return
		}
		below, _ := s.At(path[len(root):]...)
		if t := scalar(below); t != nil {
			name := "@field" + strconv.Itoa(len(f.fields))
			f.fields = append(f.fields, decls.NewVariable(name, t))
			e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), name))
		}
		return
	}
}

// scalar returns the type of a schema whose values have one simple type, or nil.
func scalar(s *schema.Schema) *types.Type {
	var of struct{ Type string }
	if s == nil || json.Unmarshal(s.JSON(), &of) != nil { // several types, or any
		return nil
	}
	switch of.Type {
	case "string":
		return types.StringType
	case "boolean":
		return types.BoolType
	case "integer":
		return types.IntType
	}
	return nil
}
