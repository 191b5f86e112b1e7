package schema

import "slices"

// Strict returns the schema in the form that the strict structured output of model providers
// requires: each object that lists its properties is closed and requires all of them, an optional
// property may be null instead, oneOf becomes anyOf, and a $ref has no siblings. An object of free
// names (a Go map) cannot be expressed that way and does not change.
//
// Validate an answer in this form with this form: the original schema rejects the null of an
// optional property, which Go's decoder reads as its absence. Every call returns the same pointer.
func (s *Schema) Strict() *Schema {
	if s == nil {
		return nil
	}
	return s.strict()
}

func strict(node any) any {
	o, ok := node.(*object)
	if !ok {
		return node
	}
	if ref, ok := o.values["$ref"]; ok {
		out := newObject("$ref", ref)
		for _, name := range []string{"$defs", "definitions"} {
			if o.has(name) {
				out.set(name, newObject(name, o.values[name]).mapSchemas(strictBelow).values[name])
			}
		}
		return out
	}
	out := o.mapSchemas(strictBelow)
	out.remove("contentEncoding") // refused by the services; the schema itself still checks it
	if alternatives, ok := out.values["oneOf"]; ok && !out.has("anyOf") {
		out.remove("oneOf")
		out.set("anyOf", alternatives)
	}
	if out.has("properties") && !out.has("allOf") {
		closeObject(out)
	}
	return out
}

// strictBelow leaves the parts of an allOf open: closed ones would refuse each other's properties.
func strictBelow(keyword string, node any) any {
	if keyword == "allOf" {
		if o, ok := node.(*object); ok {
			return o.mapSchemas(strictBelow)
		}
		return node
	}
	return strict(node)
}

func closeObject(o *object) {
	required := o.strings("required")
	properties, all := newObject(), []any{}
	for _, name := range o.object("properties").names {
		node := o.object("properties").values[name]
		if !slices.Contains(required, name) {
			node = nullable(node)
		}
		properties.set(name, node)
		all = append(all, name)
	}
	o.set("properties", properties)
	o.set("required", all)
	if _, isMap := o.values["additionalProperties"].(*object); !isMap {
		o.set("additionalProperties", false)
	}
}

// nullable returns a schema that also takes null.
func nullable(node any) any {
	o, ok := node.(*object)
	if !ok || len(o.names) == 0 {
		return node
	}
	if slices.ContainsFunc(o.list("anyOf"), isNull) {
		return o
	}
	types, simple := o.strings("type"), true
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "not", "const", "if"} {
		simple = simple && !o.has(keyword)
	}
	if !simple || len(types) == 0 && !o.has("enum") {
		alternative, description := o, o.values["description"]
		if description != nil {
			alternative = o.clone()
			alternative.remove("description")
		}
		out := newObject("anyOf", []any{alternative, newObject("type", "null")})
		if description != nil {
			out.set("description", description)
		}
		return out
	}
	out := o.clone()
	if len(types) > 0 && !slices.Contains(types, "null") {
		list := []any{"null"}
		for _, t := range types {
			list = append(list, t)
		}
		out.set("type", list)
	}
	if values := o.list("enum"); o.has("enum") && !slices.Contains(values, nil) {
		out.set("enum", append(slices.Clone(values), nil))
	}
	return out
}

func isNull(node any) bool {
	o, ok := node.(*object)
	return ok && o.values["type"] == "null"
}
