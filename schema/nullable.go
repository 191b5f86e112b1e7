package schema

import "slices"

// nullable returns a schema that accepts null and every value that the given schema accepts.
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
