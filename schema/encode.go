package schema

import "slices"

// text returns the schema of a string that contains a value as JSON text. If a string can also be a value itself, text returns the
// schema of an object around the string.
func (p *projection) text(node any) *object {
	about := "JSON text of the value"
	if o, ok := node.(*object); ok {
		if ref, ok := o.values["$ref"].(string); ok {
			target, _ := lookup(p.root, ref)
			node = toRoot(target, ref)
		}
	}
	if o, ok := node.(*object); ok && len(o.names) > 0 {
		if said := appendJSON(nil, o, true); len(said) < maxTold {
			about += ", which fits " + string(said)
		}
	}
	out := newObject("type", "string", "description", about+".")
	if p.takesText(node) {
		out = newObject("type", "object", "properties", newObject(textName, out), "required", []any{textName}, "additionalProperties", false)
	}
	return out
}

// toRoot returns a standalone copy of a schema, in which all references refer to parts of the copy.
func toRoot(node any, ref string) any {
	switch v := node.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = toRoot(e, ref)
		}
		return out
	case *object:
		out := v.clone()
		for _, name := range v.names {
			out.values[name] = toRoot(v.values[name], ref)
		}
		if out.values["$ref"] == any(ref) {
			out.set("$ref", "#")
		}
		return out
	}
	return node
}

// takesText reports whether a schema allows strings.
func (p *projection) takesText(node any) bool {
	o, ok := node.(*object)
	if !ok {
		return true
	}
	types := kindsOf(o)
	return len(types) == 0 || slices.Contains(types, "string")
}

// members projects an object with arbitrary property names to a list of its members.
func (p *projection) members(o, values *object, where string) (*object, error) {
	value, err := p.node(values, where+"[*]", false)
	if err != nil {
		return nil, err
	}
	member := newObject("type", "object",
		"properties", newObject(memberKey, newObject("type", "string"), memberValue, value),
		"required", []any{memberKey, memberValue}, "additionalProperties", false)
	about := "The members of an object, each name once."
	dropped := newObject()
	for _, keyword := range constraints["object"] {
		if limit, ok := o.values[keyword]; ok {
			dropped.set(keyword, limit)
		}
	}
	if o.has("propertyNames") {
		dropped.set("propertyNames", o.values["propertyNames"])
	}
	if len(dropped.names) > 0 {
		about += " It must fit " + string(appendJSON(nil, dropped, true)) + "."
	}
	return newObject("type", "array", "items", member, "description", about), nil
}
