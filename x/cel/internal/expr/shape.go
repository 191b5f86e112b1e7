package expr

import (
	"encoding/json"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/stonelayer/stone/schema"
)

// Schema returns what is known about the value before evaluation: the fields of a map literal and the result types of functions.
// A part that depends on the type of a variable may be anything.
func (p *Program) Schema() (*schema.Schema, error) {
	text, err := json.Marshal(shapeOf(p.checked, p.checked.Expr()))
	if err != nil {
		return nil, err
	}
	return schema.Parse(text)
}

// A shape is a JSON Schema as data.
type shape map[string]any

func shapeOf(checked *ast.AST, e ast.Expr) shape {
	switch e.Kind() {
	case ast.LiteralKind:
		return literalShape(e.AsLiteral())
	case ast.ListKind:
		return listShape(checked, e.AsList())
	case ast.MapKind:
		if s := fieldsShape(checked, e.AsMap()); s != nil {
			return s
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Conditional {
			return oneOf(shapeOf(checked, call.Args()[1]), shapeOf(checked, call.Args()[2]))
		}
	}
	return typeShape(checked.GetType(e.ID()))
}

func literalShape(v ref.Val) shape {
	text, err := appendJSON(nil, v, 0)
	if err != nil { // bytes have no JSON form
		return shape{}
	}
	return shape{"const": json.RawMessage(text)}
}

func listShape(checked *ast.AST, list ast.ListExpr) shape {
	var items []shape
	for _, e := range list.Elements() {
		items = append(items, shapeOf(checked, e))
	}
	if items == nil {
		return shape{"type": "array"}
	}
	return shape{"type": "array", "items": oneOf(items...)}
}

// fieldsShape returns the shape of a map literal whose keys are all constants, or nil for any other map.
func fieldsShape(checked *ast.AST, m ast.MapExpr) shape {
	properties, required := shape{}, []string{}
	for _, entry := range m.Entries() {
		key := entry.AsMapEntry().Key()
		if key.Kind() != ast.LiteralKind {
			return nil
		}
		name, ok := key.AsLiteral().(types.String)
		if !ok {
			return nil
		}
		properties[string(name)] = shapeOf(checked, entry.AsMapEntry().Value())
		required = append(required, string(name))
	}
	return shape{"type": "object", "properties": properties, "required": required}
}

func oneOf(shapes ...shape) shape {
	if len(shapes) == 1 {
		return shapes[0]
	}
	return shape{"anyOf": shapes}
}

func typeShape(t *cel.Type) shape {
	switch t.Kind() {
	case types.NullTypeKind:
		return shape{"type": "null"}
	case types.BoolKind:
		return shape{"type": "boolean"}
	case types.IntKind, types.UintKind:
		return shape{"type": "integer"}
	case types.DoubleKind:
		return shape{"type": "number"}
	case types.StringKind:
		return shape{"type": "string"}
	case types.ListKind:
		return shape{"type": "array", "items": typeShape(t.Parameters()[0])}
	case types.MapKind:
		return shape{"type": "object", "additionalProperties": typeShape(t.Parameters()[1])}
	default:
		return shape{}
	}
}
