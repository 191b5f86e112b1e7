package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// projection is the state of one call of Project.
type projection struct {
	*Subset
	root     *object
	defs     *object           // definitions in the result
	names    map[string]string // for each reference, name of its definition in the result
	open     map[string]bool   // references whose targets are being projected
	optional bool              // the path from the definition contains an optional property
	walk     func(node any, where string, absent bool) (*object, error)
}

// constraints contains, for each type, the keywords that constrain a value itself rather than its parts.
var constraints = map[string][]string{
	"string":  {"pattern", "format", "minLength", "maxLength", "contentEncoding", "contentMediaType"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"array":   {"minItems", "maxItems", "uniqueItems"},
	"object":  {"minProperties", "maxProperties"},
}

// unprojectable are keywords whose removal would change the structure of the values.
var unprojectable = []string{"allOf", "patternProperties", "prefixItems", "$dynamicRef", "$recursiveRef"}

func unenforced(where, what string) error {
	return fmt.Errorf("%s: %s cannot be enforced", cmp.Or(where, "the whole value"), what)
}

// node projects a schema. If absent is true, the value can be omitted, so the result need not allow null. With Encode, node
// replaces a part that cannot be enforced by JSON text.
func (p *projection) node(node any, where string, absent bool) (*object, error) {
	out, err := p.enforced(node, where, absent)
	if err == nil || !p.Encode || where == "" {
		return out, err
	}
	return p.text(node), nil
}

func (p *projection) enforced(node any, where string, absent bool) (*object, error) {
	o, ok := node.(*object)
	if !ok {
		return nil, unenforced(where, "a value of any kind")
	}
	if all := o.list("allOf"); len(all) == 1 && len(o.strings("type")) == 0 && !o.has("properties") {
		return p.node(all[0], where, absent)
	}
	if ref, ok := o.values["$ref"].(string); ok {
		return p.reference(ref, where)
	}
	for _, keyword := range unprojectable {
		if o.has(keyword) {
			return nil, unenforced(where, keyword)
		}
	}
	if list := append(slices.Clone(o.list("anyOf")), o.list("oneOf")...); len(list) > 0 {
		return p.union(o, list, where, absent)
	}
	types := kindsOf(o)
	null := slices.Contains(types, "null")
	types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
	if len(types) == 0 && !null {
		return nil, unenforced(where, "a value of any kind")
	}
	out, err := p.branches(o, types, where)
	if err != nil {
		return nil, err
	}
	// In Go, an empty slice, map or byte slice means the same as null.
	empty := len(types) == 1 && (types[0] == "array" || types[0] == "object" && !o.has("properties") || o.has("contentEncoding"))
	if out = told(out, o); null && !empty && !absent || len(types) == 0 {
		out = orNull(out)
	}
	return out, nil
}

// kindsOf returns the types that a schema allows. If the schema does not state them, they are derived from its list of values or
// from keywords such as items. Nil means any type.
func kindsOf(o *object) []string {
	types := typesOf(o)
	if values, _ := listed(o); types == nil {
		for _, v := range values {
			if t := typeOf(v); !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if types == nil && o.has("items") {
		return []string{"array"}
	}
	return types
}

// branches projects a schema that may have several types, given in types without null.
func (p *projection) branches(o *object, types []string, where string) (*object, error) {
	switch len(types) {
	case 0:
		return nil, nil
	case 1:
		return p.single(o, types[0], where)
	}
	var list []any
	values, _ := listed(o)
	plain := len(values) == 0
	for _, t := range types {
		if t == "integer" && slices.Contains(types, "number") {
			continue
		}
		one, err := p.single(o, t, where)
		if err != nil {
			return nil, err
		}
		plain = plain && len(one.names) == 1
		list = append(list, one)
	}
	if len(list) == 1 {
		return list[0].(*object), nil
	}
	if !plain {
		return newObject("anyOf", list), nil
	}
	names := make([]any, len(list))
	for i, one := range list {
		names[i] = one.(*object).values["type"]
	}
	return newObject("type", names), nil
}

// single projects a schema for values that have one of its types.
func (p *projection) single(o *object, typ, where string) (out *object, err error) {
	out = newObject("type", typ)
	dropped := newObject()
	switch typ {
	case "object":
		if values, isMap := o.values["additionalProperties"].(*object); isMap && p.Encode && !p.Maps && !o.has("properties") && where != "" {
			return p.members(o, values, where)
		}
		err = p.object(o, out, where)
	case "array":
		if _, ok := o.values["items"].([]any); ok || !o.has("items") {
			return nil, unenforced(where, "a list of values of any kind")
		}
		var items *object
		items, err = p.node(o.values["items"], where+"[*]", false)
		out.set("items", items)
	default:
		err = p.enum(o, out, dropped, where)
	}
	if err != nil {
		return nil, err
	}
	for _, keyword := range constraints[typ] {
		value, ok := o.values[keyword]
		switch {
		case !ok:
		case p.Accepts(keyword, value):
			out.set(keyword, value)
		default:
			dropped.set(keyword, value)
		}
	}
	if len(dropped.names) > 0 {
		out.set("description", "Must fit "+string(appendJSON(nil, dropped, true))+".")
	}
	return out, nil
}

// told returns a description that combines a schema's own description and the constraints that the service does not support.
func told(out, o *object) *object {
	text, _ := o.values["description"].(string)
	if text == "" || out == nil {
		return out
	}
	out = out.clone()
	if more, ok := out.values["description"].(string); ok {
		text += " " + more
	}
	out.set("description", text)
	return out
}

// enum adds to out the values in the list of o that have the type of out.
func (p *projection) enum(o, out, dropped *object, where string) error {
	all, _ := listed(o)
	if len(all) == 0 {
		return nil
	}
	var values []any
	known := true
	for _, v := range all {
		if accepts(out.strings("type"), typeOf(v)) {
			values = append(values, v)
			known = known && p.Accepts("enum", v)
		}
	}
	switch {
	case len(values) == 0:
		return unenforced(where, "an enum without a value of the type")
	case known:
		out.set("enum", values)
	default:
		dropped.set("enum", values)
	}
	return nil
}

// object projects an object with either listed properties or arbitrary property names.
func (p *projection) object(o, out *object, where string) error {
	properties, rest := o.object("properties"), o.values["additionalProperties"]
	values, isMap := rest.(*object)
	switch {
	case isMap && p.Maps && len(properties.names) == 0:
		projected, err := p.node(values, where+"[*]", false)
		out.set("additionalProperties", projected)
		return err
	case isMap || (len(properties.names) == 0 || p.Exact) && rest != false:
		return unenforced(where, "an object of free names")
	}
	required := o.strings("required")
	for _, name := range required {
		if !properties.has(name) {
			return unenforced(where, "the required property "+strconv.Quote(name)+" without a schema")
		}
	}
	projected, all, before := newObject(), []any{}, p.optional
	defer func() { p.optional = before }()
	for _, name := range properties.names {
		called := name
		if p.Name != nil && !p.Name(name) {
			called = alias(name)
			if !p.Encode || !p.Name(called) {
				return unenforced(where, "the name "+strconv.Quote(name))
			}
		}
		optional := !slices.Contains(required, name)
		if optional && p.AllRequired && p.Exact {
			return unenforced(where, "the optional property "+strconv.Quote(name))
		}
		p.optional = before || optional
		below, err := p.node(properties.values[name], strings.TrimPrefix(where+"."+name, "."), optional && !p.AllRequired)
		if err != nil {
			return err
		}
		if optional && p.AllRequired {
			below = orNull(below)
		}
		if !optional || p.AllRequired {
			all = append(all, called)
		}
		if called != name && !below.has("$ref") {
			below = told(below, newObject("description", "The property "+strconv.Quote(name)+"."))
		}
		projected.set(called, below)
	}
	out.set("properties", projected)
	out.set("required", all)
	out.set("additionalProperties", false)
	return nil
}

// union projects a schema with alternatives.
func (p *projection) union(o *object, list []any, where string, absent bool) (*object, error) {
	for _, keyword := range []string{"properties", "additionalProperties", "items", "enum", "const"} {
		if o.has(keyword) {
			return nil, unenforced(where, "anyOf beside "+keyword)
		}
	}
	var out []any
	for _, node := range list {
		if isNull(node) && absent && len(list) > 1 {
			continue
		}
		if below, ok := node.(*object); ok && o.has("type") && !below.has("type") && !below.has("$ref") {
			below = below.clone()
			below.set("type", o.values["type"])
			node = below
		}
		below, err := p.node(node, where, absent)
		if err != nil {
			return nil, err
		}
		out = append(out, below)
	}
	if len(out) == 1 {
		return told(out[0].(*object), o), nil
	}
	return told(newObject("anyOf", out), o), nil
}

// reference projects a $ref and the definition to which it refers.
func (p *projection) reference(ref, where string) (*object, error) {
	target, ok := lookup(p.root, ref)
	if _, isObject := target.(*object); !ok || !isObject {
		return nil, unenforced(where, "the reference "+strconv.Quote(ref))
	}
	if p.open[ref] && (p.Cycles == "" || p.Cycles == "optional" && !p.optional) {
		return nil, unenforced(where, "a value that contains values of its own kind")
	}
	if ref == "#" {
		return newObject("$ref", ref), nil
	}
	name, done := p.names[ref]
	if !done {
		name = notInName.ReplaceAllString(ref[strings.LastIndexByte(ref, '/')+1:], "_")
		for base, n := name, 2; p.defs.has(name); n++ {
			name = base + strconv.Itoa(n)
		}
		p.names[ref], p.open[ref] = name, true
		p.defs.set(name, nil)
		before := p.optional
		p.optional = false
		def, err := p.walk(target, where, false)
		if err != nil {
			return nil, err
		}
		p.optional, p.open[ref] = before, false
		p.defs.set(name, def)
	}
	return newObject("$ref", "#/$defs/"+name), nil
}

// orNull returns o, a projected schema, changed such that it also accepts null. If o is nil, the result accepts only null.
func orNull(o *object) *object {
	null := newObject("type", "null")
	if o == nil {
		return null
	}
	typ, single := o.values["type"].(string)
	switch list := o.list("anyOf"); {
	case slices.ContainsFunc(list, isNull), typ == "null", slices.Contains(o.strings("type"), "null"):
		return o
	case list != nil:
		out := o.clone()
		out.set("anyOf", append(slices.Clone(list), null))
		return out
	case !o.has("enum") && typ != "object" && typ != "array" && !o.has("$ref"):
		out := o.clone()
		if single {
			out.set("type", []any{typ, "null"})
		} else {
			out.set("type", append(slices.Clone(o.list("type")), "null"))
		}
		return out
	}
	inner := o.clone()
	inner.remove("description")
	out := newObject("anyOf", []any{inner, null})
	if text, ok := o.values["description"]; ok {
		out.set("description", text)
	}
	return out
}
