package schema

import "slices"

// referenceOf returns the reference in a schema that consists only of a reference, possibly inside an allOf. It returns "" for any
// other schema. The result beside is true if the schema has other keywords that matter.
func referenceOf(o *object) (ref string, beside bool) {
	if all := o.list("allOf"); len(all) == 1 && !o.has("$ref") {
		if below, ok := all[0].(*object); ok && len(below.names) == 1 {
			ref, _ = below.values["$ref"].(string)
		}
	} else if len(all) == 0 {
		ref, _ = o.values["$ref"].(string)
	}
	return ref, slices.ContainsFunc(o.names, func(name string) bool {
		return name != "$ref" && name != "allOf" && (name == "description" || !slices.Contains(annotations, name))
	})
}

// target returns the schema to which ref refers, and reports whether it may replace the reference. It may not if the reference
// occurs within that schema, or if too many references have been replaced.
func (l *loosening) target(ref string) (*object, bool) {
	node, _ := lookup(l.root, ref)
	def, ok := node.(*object)
	return def, ok && !slices.Contains(l.inlining, ref) && l.inlined < maxInlined
}

// flatten returns a schema with all parts of its allOf, and the target of its reference, merged into it.
func (l *loosening) flatten(o *object) *object {
	out := o.clone()
	out.remove("allOf")
	out.remove("$ref")
	parts := o.list("allOf")
	if ref, ok := o.values["$ref"].(string); ok {
		parts = append(slices.Clone(parts), newObject("$ref", ref))
	}
	for _, part := range parts {
		below, ok := part.(*object)
		if !ok {
			continue
		}
		if ref, ok := below.values["$ref"].(string); ok {
			def, ok := l.target(ref)
			if !ok {
				continue
			}
			l.inlining = append(l.inlining, ref) // stays in the list until node has projected the parts below
			l.inlined++
			mergeInto(out, l.flatten(def))
			below = below.clone()
			below.remove("$ref")
		}
		mergeInto(out, l.flatten(below))
	}
	return out
}

// mergeInto merges part into out: it merges the properties, the required names and the types, and copies all other keywords that
// out does not have.
func mergeInto(out, part *object) {
	apart := out.has("properties") && part.has("properties") && !equal(out.values["additionalProperties"], part.values["additionalProperties"])
	for _, keyword := range part.names {
		value := part.values[keyword]
		switch {
		case !out.has(keyword):
			out.set(keyword, value)
		case keyword == "properties":
			out.set(keyword, bothProperties(out.object(keyword), part.object(keyword)))
		case keyword == "required":
			out.set(keyword, union(out.strings(keyword), part.strings(keyword)))
		case keyword == "type":
			if types := narrower(out.strings(keyword), part.strings(keyword)); len(types) == 1 {
				out.set(keyword, types[0])
			} else if len(types) > 1 {
				out.set(keyword, list(types))
			}
		}
	}
	if apart {
		out.remove("additionalProperties") // one part rejects properties that the other lists
	}
}

// narrower returns the types that both lists allow.
func narrower(a, b []string) (both []string) {
	for _, t := range a {
		if accepts(b, t) {
			both = append(both, t)
		} else if t == "number" && slices.Contains(b, "integer") {
			both = append(both, "integer")
		}
	}
	return both
}

func list(names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}

func union(a, b []string) []any {
	out := list(a)
	for _, name := range b {
		if !slices.Contains(a, name) {
			out = append(out, name)
		}
	}
	return out
}

// bothProperties merges the properties of two schemas such that a value must match both.
func bothProperties(a, b *object) *object {
	out := a.clone()
	if out.values == nil {
		out = newObject()
	}
	for _, name := range b.names {
		if own, ok := out.values[name]; ok && !equal(own, b.values[name]) {
			out.set(name, newObject("allOf", []any{own, b.values[name]}))
		} else {
			out.set(name, b.values[name])
		}
	}
	return out
}

// foldable reports whether all alternatives of a schema describe objects, so that fold can join them.
func (l *loosening) foldable(o *object, alternatives []any) bool {
	if o.has("properties") || slices.Equal(o.strings("type"), []string{"object"}) {
		return true
	}
	return slices.ContainsFunc(alternatives, func(v any) bool {
		below, ok := v.(*object)
		return ok && below.has("required") && !below.has("properties") && !below.has("$ref") && !below.has("allOf")
	})
}

// fold returns a single object schema in place of alternatives. It has the properties of all alternatives, and requires those
// that every alternative requires. The result told describes the alternatives.
func (l *loosening) fold(o *object) (folded, told *object) {
	told = newObject()
	for range 2 { // once for anyOf, once for oneOf
		alternatives, keyword := alternativesOf(o)
		if len(alternatives) == 0 {
			break
		}
		var branches []*object
		o, branches = l.foldOne(o, keyword, alternatives)
		told.set(keyword, short(alternatives, branches))
	}
	return o, told
}

func (l *loosening) foldOne(o *object, keyword string, alternatives []any) (out *object, branches []*object) {
	out = o.clone()
	out.remove(keyword)
	for _, v := range alternatives {
		branch, ok := v.(*object)
		if !ok {
			if v == true {
				branches = append(branches, newObject())
			}
			continue
		}
		branch = l.flatten(branch)
		if types := typesOf(branch); len(types) == 0 || slices.Contains(types, "object") {
			branch, _ = l.fold(branch)
			branches = append(branches, branch)
		}
	}
	closed := len(branches) > 0
	properties := out.object("properties").clone()
	if properties.values == nil {
		properties = newObject()
	}
	var inAll []string
	for i, branch := range branches {
		eitherProperties(properties, branch.object("properties"), o.object("properties"))
		closed = closed && branch.values["additionalProperties"] == false
		if required := branch.strings("required"); i == 0 {
			inAll = required
		} else {
			inAll = slices.DeleteFunc(slices.Clone(inAll), func(name string) bool { return !slices.Contains(required, name) })
		}
	}
	out.set("properties", properties)
	if required := union(out.strings("required"), inAll); len(required) > 0 {
		out.set("required", required)
	}
	if closed && !out.has("additionalProperties") {
		out.set("additionalProperties", false)
	}
	out.set("type", "object")
	return out, branches
}

// eitherProperties merges the properties of an alternative into the properties of earlier alternatives. A property that occurs in
// several alternatives may match any of its schemas.
func eitherProperties(properties, branch, own *object) {
	for _, name := range branch.names {
		value := branch.values[name]
		known, has := properties.values[name]
		switch {
		case !has:
			properties.set(name, value)
		case own.has(name) || equal(known, value):
			// All other keywords apply to every alternative.
		default:
			either, _ := known.(*object)
			var list []any
			if either != nil && len(either.names) == 1 && either.has("anyOf") {
				list = either.list("anyOf")
			} else {
				list = []any{known}
			}
			if slices.ContainsFunc(list, func(v any) bool { return equal(v, value) }) {
				continue
			}
			properties.set(name, oneList(append(slices.Clone(list), value)))
		}
	}
}

// oneList returns a schema for the values of all alternatives. Alternatives that only list strings become one list.
func oneList(alternatives []any) *object {
	var values []any
	for _, v := range alternatives {
		o, ok := v.(*object)
		if !ok {
			return newObject("anyOf", alternatives)
		}
		own, ok := listed(o)
		if !ok || slices.ContainsFunc(o.names, func(n string) bool { return n != "const" && n != "enum" && n != "type" }) ||
			slices.ContainsFunc(own, func(v any) bool { return typeOf(v) != "string" }) {
			return newObject("anyOf", alternatives)
		}
		values = append(values, own...)
	}
	return newObject("type", "string", "enum", values)
}

// short returns the text of alternatives or, if it is long, only their property names.
func short(alternatives []any, branches []*object) []any {
	if len(appendJSON(nil, alternatives, true)) <= maxTold {
		return alternatives
	}
	out := make([]any, len(branches))
	for i, b := range branches {
		one := newObject()
		if names := b.object("properties").names; len(names) > 0 {
			one.set("properties", list(names))
		}
		if required := b.strings("required"); len(required) > 0 {
			one.set("required", list(required))
		}
		out[i] = one
	}
	return out
}
