package schema

import (
	"errors"
	"slices"
	"strings"
)

// maxInlined is the maximum number of references that Loose inlines.
const maxInlined = 1000

// maxTold is the maximum length of a keyword's description, in bytes. If the description of alternatives would be longer, it
// contains only their property names. Any other keyword with a longer description is not described.
const maxTold = 2 << 10

// Loose returns the JSON text of an object schema for a service that shows the schema to a model but does not enforce it. If
// Accepts returns false for a keyword, the keyword becomes part of the value's description. Several alternatives for an object
// become one object schema: it has the properties of all alternatives, and a property is required if every alternative requires it.
// In other places, oneOf becomes anyOf. The result told is text that describes the constraints of the whole value.
//
// Every value that matches the schema also matches the result, unless Name rejects one of its names. Callers must validate answers
// against the schema itself. Loose returns an error if the text is not a schema of objects.
func (b *Subset) Loose(text []byte) (projected []byte, told string, err error) {
	p, err := b.begin(text)
	if err != nil {
		return nil, "", err
	}
	l := &loosening{projection: p}
	p.walk = l.node
	top := l.flatten(p.root)
	if types := typesOf(top); len(types) > 0 && !slices.Contains(types, "object") {
		return nil, "", errors.New("schema: the whole value is not an object")
	}
	top.set("type", "object")
	if enum, ok := listed(top); ok { // no service accepts an enum of objects at the top
		top.remove("enum")
		top.remove("const")
		l.more = append(l.more, newObject("enum", enum))
	}
	top, folded := l.fold(top)
	out, dropped := l.object(top, "")
	l.more = append(l.more, dropped, folded)
	if text, ok := top.values["description"].(string); ok {
		out.set("description", text)
	}
	if len(p.defs.names) > 0 {
		out.set("$defs", p.defs)
	}
	return appendJSON(nil, out, true), constraintsText(l.more...), nil
}

// loosening is the state of one call of Loose.
type loosening struct {
	*projection
	inlining []string  // references whose targets are being projected in their place
	inlined  int       // number of references replaced so far
	more     []*object // constraints of the whole value
}

// constraintsText returns text that describes constraints to a model.
func constraintsText(list ...*object) string {
	all := newObject()
	for _, o := range list {
		for _, keyword := range o.names {
			if len(appendJSON(nil, o.values[keyword], true)) <= maxTold {
				all.set(keyword, o.values[keyword])
			}
		}
	}
	if len(all.names) == 0 {
		return ""
	}
	return "Must fit " + string(appendJSON(nil, all, true)) + "."
}

// node projects a schema. The error is always nil.
func (l *loosening) node(v any, where string, _ bool) (*object, error) {
	o, ok := v.(*object)
	if !ok {
		return newObject(), nil // any value
	}
	ref, beside := referenceOf(o)
	if _, replaceable := l.target(ref); ref != "" && (!beside || !replaceable || l.open[ref]) {
		if out, err := l.reference(ref, where); err == nil {
			return out, nil
		}
		if l.open[ref] { // the service does not support a schema that refers to itself here
			return l.described(newObject(), o, newObject()), nil
		}
	}
	defer func(n int) { l.inlining = l.inlining[:n] }(len(l.inlining))
	o = l.flatten(o)
	var out, dropped *object
	alternatives, keyword := alternativesOf(o)
	switch {
	case len(alternatives) > 0 && l.foldable(o, alternatives):
		var folded *object
		o, folded = l.fold(o)
		out, dropped = l.object(o, where)
		for _, keyword := range folded.names {
			dropped.set(keyword, folded.values[keyword])
		}
	case len(alternatives) > 0:
		out, dropped = l.alternatives(o, keyword, alternatives, where)
	default:
		out, dropped = l.single(o, where)
	}
	return l.described(out, o, dropped), nil
}

// described adds to out a description: the description of o, followed by the constraints in dropped, which the service does not
// support.
func (l *loosening) described(out, o, dropped *object) *object {
	var text []string
	if own, ok := o.values["description"].(string); ok && own != "" {
		text = append(text, own)
	}
	for _, keyword := range []string{"title", "default"} {
		value, ok := o.values[keyword]
		switch {
		case !ok:
		case l.Accepts(keyword, value):
			out.set(keyword, value)
		case keyword == "default":
			text = append(text, "Default: "+string(appendJSON(nil, value, true))+".")
		}
	}
	if told := constraintsText(dropped); told != "" {
		text = append(text, told)
	}
	if len(text) > 0 {
		out = out.clone()
		out.set("description", strings.Join(text, " "))
	}
	return out
}

// alternativesOf returns the alternatives of a schema and the keyword that contains them, or nil and "" if there are none.
func alternativesOf(o *object) ([]any, string) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := o.list(keyword); len(list) > 0 {
			return list, keyword
		}
	}
	return nil, ""
}

// alternatives projects a schema whose alternatives are not all objects.
func (l *loosening) alternatives(o *object, keyword string, list []any, where string) (out, dropped *object) {
	dropped = l.rest(o, keyword, "type")
	var some []any
	for _, v := range list {
		if v == false {
			continue
		}
		if below, ok := v.(*object); ok && o.has("type") && !below.has("type") && !below.has("$ref") {
			below = below.clone()
			below.set("type", o.values["type"])
			v = below
		}
		below, _ := l.node(v, where, false)
		if !slices.ContainsFunc(some, func(other any) bool { return equal(other, below) }) {
			some = append(some, below)
		}
	}
	if len(some) == 1 {
		return some[0].(*object), dropped
	}
	return newObject("anyOf", some), dropped
}

// annotations are the keywords that do not constrain values.
var annotations = []string{"$schema", "$id", "id", "$defs", "definitions", "$comment", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary",
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable", "contentMediaType", "contentEncoding"}

// rest returns a copy of a schema without annotations and without the known keywords.
func (l *loosening) rest(o *object, known ...string) *object {
	out := newObject()
	for _, keyword := range o.names {
		if !slices.Contains(annotations, keyword) && !slices.Contains(known, keyword) && !strings.HasPrefix(keyword, "x-") {
			out.set(keyword, o.values[keyword])
		}
	}
	return out
}

// single projects a schema without alternatives. It also returns the constraints that the projection lacks.
func (l *loosening) single(o *object, where string) (out, dropped *object) {
	types := kindsOf(o)
	if slices.Contains(types, "object") && len(types) == 1 {
		return l.object(o, where)
	}
	if values, ok := listed(o); ok && slices.Contains(values, any(nil)) && len(values) > 1 {
		o = o.clone()
		o.remove("const")
		o.set("enum", slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil }))
		o.remove("type")
		out, dropped = l.single(o, where)
		return orNull(out), dropped
	}
	out = newObject()
	if len(types) == 1 {
		out.set("type", types[0])
	} else if o.has("type") {
		out.set("type", o.values["type"])
	}
	dropped = l.rest(o, "type", "enum", "const", "items", "prefixItems", "additionalItems", "properties", "required", "additionalProperties")
	if slices.Contains(types, "array") {
		l.array(o, out, dropped, where)
	}
	if slices.Contains(types, "object") {
		fields, more := l.object(o, where)
		for _, keyword := range []string{"properties", "required", "additionalProperties"} {
			if fields.has(keyword) {
				out.set(keyword, fields.values[keyword])
			}
		}
		for _, keyword := range more.names {
			dropped.set(keyword, more.values[keyword])
		}
	}
	if values, ok := listed(o); ok {
		if slices.ContainsFunc(values, func(v any) bool { return !l.Accepts("enum", v) }) {
			dropped.set("enum", values)
		} else {
			out.set("enum", values)
		}
	}
	l.keep(out, dropped)
	return out, dropped
}

// keep moves the constraints that the service supports from dropped to out.
func (l *loosening) keep(out, dropped *object) {
	for _, list := range constraints {
		for _, keyword := range list {
			if value, ok := dropped.values[keyword]; ok && l.Accepts(keyword, value) {
				dropped.remove(keyword)
				out.set(keyword, value)
			}
		}
	}
}

// array projects the elements of an array. Services require a schema of the elements.
func (l *loosening) array(o, out, dropped *object, where string) {
	first, items := o.list("prefixItems"), o.values["items"]
	if list, ok := items.([]any); ok { // form used in older drafts
		first, items = list, o.values["additionalItems"]
	}
	if items == false {
		dropped.set("items", false)
	}
	below, _ := l.node(items, where+"[*]", false)
	out.set("items", below)
	if len(first) == 0 {
		return
	}
	if !l.Accepts("prefixItems", nil) {
		dropped.set("prefixItems", first)
		return
	}
	list := make([]any, len(first))
	for i, v := range first {
		list[i], _ = l.node(v, where+"[*]", false)
	}
	out.set("prefixItems", list)
}

// object projects an object.
func (l *loosening) object(o *object, where string) (out, dropped *object) {
	out = newObject("type", "object")
	dropped = l.rest(o, "type", "properties", "required", "additionalProperties", "anyOf", "oneOf")
	properties, unnamed := newObject(), newObject()
	required, kept := o.strings("required"), []any{}
	before := l.optional
	for _, name := range append(o.object("properties").names, required...) {
		value, known := o.object("properties").values[name]
		switch {
		case properties.has(name) || unnamed.has(name) || value == false:
			continue
		case l.Name != nil && !l.Name(name):
			if value == nil {
				value = true
			}
			unnamed.set(name, value)
			continue
		}
		l.optional = before || !slices.Contains(required, name)
		if !known {
			value = true
		}
		below, _ := l.node(value, strings.TrimPrefix(where+"."+name, "."), false)
		properties.set(name, below)
		if slices.Contains(required, name) {
			kept = append(kept, name)
		}
	}
	l.optional = before
	if len(properties.names) > 0 || where == "" {
		out.set("properties", properties)
	}
	if len(kept) > 0 {
		out.set("required", kept)
	}
	if len(unnamed.names) > 0 {
		dropped.set("properties", unnamed)
	}
	open := len(unnamed.names) > 0 || o.has("patternProperties")
	switch rest := o.values["additionalProperties"].(type) {
	case *object:
		if !open {
			below, _ := l.node(rest, where+"[*]", false)
			out.set("additionalProperties", below)
		}
	case bool:
		if !rest && !open {
			out.set("additionalProperties", false)
		}
	}
	l.keep(out, dropped)
	return out, dropped
}
