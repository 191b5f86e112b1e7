package schema

import (
	"encoding/json"
	"math/big"
	"slices"
)

// view is a schema with its references and allOf resolved. A value must match all of its parts.
type view struct {
	parts []*object
	never bool // a part is the schema false, which no value matches
	vague bool // a keyword or reference that is not analyzed restricts the values
}

// vagueKeywords are keywords that restrict values in ways that a view does not analyze.
var vagueKeywords = []string{"not", "if", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames",
	"minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "multipleOf",
	"$dynamicRef", "$recursiveRef"}

// view returns the view of nodes in the schema's tree, all of which apply to the same value.
func (s *Schema) view(nodes ...any) view {
	var v view
	seen := map[*object]bool{}
	var add func(node any)
	add = func(node any) {
		o, ok := node.(*object)
		if !ok {
			v.never = v.never || node == false
			return
		}
		if seen[o] {
			return
		}
		seen[o] = true
		v.parts = append(v.parts, o)
		v.vague = v.vague || slices.ContainsFunc(vagueKeywords, o.has)
		if ref, ok := o.values["$ref"].(string); ok {
			if target, found := s.follow(ref); found {
				add(target)
			} else {
				v.vague = true
			}
		}
		for _, part := range o.list("allOf") {
			add(part)
		}
	}
	for _, node := range nodes {
		add(node)
	}
	v.vague = v.vague || len(v.parts) > maxParts
	return v
}

func (s *Schema) follow(ref string) (any, bool) {
	if !s.foldable {
		return nil, false
	}
	return lookup(s.root, ref)
}

// maxParts is the maximum number of parts in a view of recursive schemas. If there are more, the view is vague.
const maxParts = 100

// alternatives returns the alternatives in the first anyOf or oneOf among the parts, and the view without them.
func (v view) alternatives() (rest view, list []any) {
	if len(v.parts) > maxParts {
		return v, nil
	}
	for i, part := range v.parts {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			if list := part.list(keyword); len(list) > 0 {
				rest := v
				rest.parts = slices.Clone(v.parts)
				rest.parts[i] = part.clone()
				rest.parts[i].remove(keyword)
				return rest, list
			}
		}
	}
	return v, nil
}

// and returns a view with the parts of both views.
func (v view) and(w view) view {
	parts := slices.Concat(v.parts, w.parts)
	return view{parts, v.never || w.never, v.vague || w.vague || len(parts) > maxParts}
}

// requires reports whether the view requires the named property.
func (v view) requires(name string) bool {
	return slices.ContainsFunc(v.parts, func(o *object) bool {
		return slices.Contains(o.strings("required"), name) && len(o.list("required")) > 0
	})
}

// types returns the JSON types that are allowed by all parts. The result known is false if no part restricts the type.
func (v view) types() (types []string, known bool) {
	for _, part := range v.parts {
		own := typesOf(part)
		if own == nil {
			continue
		}
		if !known {
			types, known = own, true
			continue
		}
		var both []string
		for _, t := range types {
			switch {
			case accepts(own, t):
				both = append(both, t)
			case t == "number" && slices.Contains(own, "integer"):
				both = append(both, "integer")
			}
		}
		types = both
	}
	return types, known
}

// typesOf returns the types that a part states or, if it states none but lists properties, the type object. It returns nil for any
// other part.
func typesOf(o *object) []string {
	switch {
	case o.has("type"):
		return o.strings("type")
	case o.has("properties"):
		return []string{"object"}
	}
	return nil
}

// accepts reports whether every value of type t has one of the types.
func accepts(types []string, t string) bool {
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// values returns the values that are in the closed lists of all parts. The result closed is false if no part has a list.
func (v view) values() (values []any, closed bool) {
	for _, part := range v.parts {
		own, ok := listed(part)
		if !ok {
			continue
		}
		if !closed {
			values, closed = own, true
			continue
		}
		values = slices.DeleteFunc(slices.Clone(values), func(x any) bool { return !containsValue(own, x) })
	}
	if types, known := v.types(); known {
		values = slices.DeleteFunc(slices.Clone(values), func(x any) bool { return !accepts(types, typeOf(x)) })
	}
	return values, closed
}

// listed returns the values in a part's const or enum, and reports whether it has one.
func listed(o *object) ([]any, bool) {
	if value, ok := o.values["const"]; ok {
		return []any{value}, true
	}
	values, ok := o.values["enum"].([]any)
	return values, ok
}

func containsValue(values []any, x any) bool {
	return slices.ContainsFunc(values, func(y any) bool { return equal(x, y) })
}

// equal reports whether two values in a tree are equal by the rules of JSON Schema: numbers are compared by value, and the order of
// members does not matter.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.names) != len(b.names) {
			return false
		}
		for _, name := range a.names {
			if !b.has(name) || !equal(a.values[name], b.values[name]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, *object:
		return false
	}
	return a == b
}

// typeOf returns the JSON type of a value in a tree.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
