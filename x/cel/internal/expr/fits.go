package expr

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/stonelayer/stone/schema"
)

// Fits checks that the program uses only fields that its variables can have, and uses them according to their types. The map
// schemas contains schemas by path, such as "call.input"; nil schemas are ignored. The error is an *Error about the first field
// that no value of a schema has, or about the first use that does not fit the type of a field. A field within has(…) may be
// missing.
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
	hidden  int64 // the number of operands whose type loosen has hidden
}

// walk visits an expression and returns the schema of its value and its text. A nil schema accepts anything. Bound contains the
// variables of the enclosing macros.
func (f *fitting) walk(e ast.Expr, bound map[string]*schema.Schema) (s *schema.Schema, path string) {
	if f.fault != nil {
		return nil, ""
	}
	switch e.Kind() {
	case ast.IdentKind:
		path = strings.TrimPrefix(e.AsIdent(), ".")
		var ok bool
		if s, ok = bound[path]; !ok {
			s = f.schemas[path]
		}
	case ast.SelectKind:
		of := e.AsSelect()
		up, name := f.walk(of.Operand(), bound)
		if of.IsTestOnly() { // the field may be missing
			return nil, ""
		}
		path = name + "." + of.FieldName()
		root, _, _ := strings.Cut(name, ".")
		if _, macro := bound[root]; f.schemas[path] != nil && !macro {
			s = f.schemas[path]
		} else {
			s = f.at(e, up, name, of.FieldName())
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			f.walk(call.Args()[1], bound)
			list, name := f.walk(call.Args()[0], bound)
			s, path = elements(list), name+"[…]"
			break
		}
		before := len(f.fields)
		for _, part := range children(e) {
			f.walk(part, bound)
		}
		if slices.Contains(loose, e.AsCall().FunctionName()) && len(f.fields) > before {
			f.loosen(e)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		list, _ := f.walk(c.IterRange(), bound)
		f.walk(c.AccuInit(), bound)
		after := maps.Clone(bound)
		if after == nil {
			after = map[string]*schema.Schema{}
		}
		after[c.AccuVar()] = nil
		inside := maps.Clone(after)
		inside[c.IterVar()] = elements(list)
		if c.HasIterVar2() { // the first variable is the index
			inside[c.IterVar()], inside[c.IterVar2()] = nil, elements(list)
		}
		f.walk(c.LoopCondition(), inside)
		f.walk(c.LoopStep(), inside)
		f.walk(c.Result(), after)
	default:
		for _, part := range children(e) {
			f.walk(part, bound)
		}
	}
	if t := scalar(s); t != nil && f.fault == nil {
		name := "@field" + strconv.Itoa(len(f.fields))
		f.fields = append(f.fields, decls.NewVariable(name, t))
		e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), name))
	}
	return s, path
}

// loose are the operators that compare an integer with any number when they run, but not when types are checked.
var loose = []string{operators.Equals, operators.NotEquals, operators.In, operators.Conditional}

// loosen hides the types of integer operands from the checker.
func (f *fitting) loosen(e ast.Expr) {
	make, of := ast.NewExprFactory(), e.AsCall()
	parts := slices.Clone(of.Args())
	for i, part := range parts {
		if part.Kind() == ast.IdentKind && f.isInteger(part.AsIdent()) || part.Kind() == ast.CallKind {
			f.hidden++
			parts[i] = make.NewCall(1<<40+f.hidden, "dyn", part)
		}
	}
	e.SetKindCase(make.NewCall(e.ID(), of.FunctionName(), parts...))
}

func (f *fitting) isInteger(name string) bool {
	return slices.ContainsFunc(f.fields, func(v *decls.VariableDecl) bool { return v.Name() == name && v.Type() == types.IntType })
}

// at returns the schema of a field. If no value of the schema has the field, it reports a fault.
func (f *fitting) at(e ast.Expr, s *schema.Schema, path, field string) *schema.Schema {
	below, ok := s.At(field)
	if !ok && f.fault == nil {
		f.fault = at(f.locate(e.ID()), path+" has no field "+field+hint(field, s.Properties()))
	}
	return below
}

// elements returns the schema of an array's elements. It returns nil if the elements have different schemas or s may
// describe other values than arrays.
func elements(s *schema.Schema) *schema.Schema {
	var of struct{ Type any }
	if s == nil || json.Unmarshal(s.JSON(), &of) != nil {
		return nil
	}
	if list, ok := of.Type.([]any); ok && len(list) == 2 && slices.Contains(list, any("null")) && slices.Contains(list, any("array")) {
		of.Type = "array" // the schema of a Go slice
	}
	if of.Type != "array" {
		return nil
	}
	first, _ := s.At("0")
	if far, _ := s.At("1000000"); first == nil || far == nil || first.String() != far.String() {
		return nil
	}
	return first
}

// scalar returns the type of a schema's values if all of them have the same simple type, and nil otherwise.
func scalar(s *schema.Schema) *types.Type {
	var of struct{ Type string }
	if s == nil || json.Unmarshal(s.JSON(), &of) != nil { // several types, or any type
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
