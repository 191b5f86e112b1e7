package schema

import (
	"errors"
	"fmt"
)

// A Subset is the part of JSON Schema that a service can enforce on its output.
type Subset struct {
	// Accepts reports whether the service supports a constraint with this value: a number or a pattern, a format, or one value of
	// an enum. The value is a string, a bool or a json.Number.
	Accepts func(keyword string, value any) bool
	// Name reports whether a property may have this name. Nil allows every name.
	Name func(string) bool
	// AllRequired means that every property must be required. Optional properties may be null instead.
	AllRequired bool
	// Maps means that objects with free names, such as Go maps, can be enforced.
	Maps bool
	// Exact means that the enforced schema must mean the same as the original: objects with listed properties must be closed, and
	// with AllRequired every property is required.
	Exact bool
	// Cycles tells where a schema may refer to itself: "" for nowhere, "optional" for below an optional property, or "all".
	Cycles string
	// Encode means that parts that cannot be enforced take another form, which [Schema.Restore] reads: an object with free names
	// becomes a list of members, any other part becomes JSON text, and a property with a rejected name gets another name.
	Encode bool
	Max    SubsetLimits
}

// SubsetLimits is the maximum size of a schema. Zero means unlimited.
type SubsetLimits struct {
	Depth      int // the nesting depth of objects and arrays
	Properties int // the number of properties of all objects together
	Optional   int // the number of properties that are not required
	Unions     int // the number of schemas with several types or alternatives
	Values     int // the number of values of all enums together
	Text       int // the total length of enum values and of the names of properties and definitions, in bytes
	LongEnum   int // the total length of the strings of one enum with more than 250 values, in bytes
}

// Project returns the JSON text of the schema in the form that the service enforces. Each object with listed properties is
// closed, oneOf becomes anyOf, and a $ref has no siblings. Null is not offered where an empty slice or map, or the absence of a
// property, has the same meaning. Constraints that the service does not support become part of the value's description.
// Properties keep their order.
//
// A value that fits the result need not fit the schema: validate it. A null that the schema rejects means an absent property; see
// [Schema.Restore].
//
// The error names the part that the service cannot enforce: a value of any kind, or an object with free names. With Encode, such
// parts can be encoded, so an error concerns only the whole value or its size.
func (b *Subset) Project(text []byte) ([]byte, error) {
	p, err := b.begin(text)
	if err != nil {
		return nil, err
	}
	if hasInnerID(p.root, true) {
		return nil, errors.New("schema: a nested $id is not supported")
	}
	p.walk = p.node
	top := p.root
	for range maxBranches {
		ref, ok := top.values["$ref"].(string)
		if !ok {
			break
		}
		target, _ := lookup(p.root, ref)
		if top, ok = target.(*object); !ok {
			return nil, fmt.Errorf("schema: no definition %q", ref)
		}
	}
	out, err := p.node(top, "", true)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if out.values["type"] != "object" {
		return nil, errors.New("schema: the whole value is not an object")
	}
	if len(p.defs.names) > 0 {
		out.set("$defs", p.defs)
	}
	if err := b.Max.check(out); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return appendJSON(nil, out, true), nil
}

// begin reads the text of a schema.
func (b *Subset) begin(text []byte) (*projection, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("schema: the text has %d bytes, at most %d are read", len(text), maxText)
	}
	node, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, ok := node.(*object)
	if !ok {
		return nil, errors.New("schema: it is not an object")
	}
	return &projection{Subset: b, root: root, defs: newObject(), names: map[string]string{}, open: map[string]bool{"#": true}}, nil
}

// check returns an error if a projected schema is too large.
func (m SubsetLimits) check(root *object) error {
	var n SubsetLimits
	n.measure(root, 1)
	for _, l := range []struct {
		what      string
		have, max int
	}{
		{"levels of objects and arrays", n.Depth, m.Depth},
		{"properties", n.Properties, m.Properties},
		{"optional properties", n.Optional, m.Optional},
		{"values of several types", n.Unions, m.Unions},
		{"values in its enums", n.Values, m.Values},
		{"bytes of names and enums", n.Text, m.Text},
		{"bytes in a long enum", n.LongEnum, m.LongEnum},
	} {
		if l.max > 0 && l.have > l.max {
			return fmt.Errorf("it has %d %s, at most %d can be enforced", l.have, l.what, l.max)
		}
	}
	return nil
}

// SizeOf returns the size of a projected schema.
func SizeOf(projected []byte) (size SubsetLimits) {
	if node, err := decode(projected); err == nil {
		if root, ok := node.(*object); ok {
			size.measure(root, 1)
		}
	}
	return size
}

// measure adds the size of a projected schema.
func (m *SubsetLimits) measure(o *object, depth int) {
	m.Depth = max(m.Depth, depth)
	properties := o.object("properties").names
	m.Properties += len(properties)
	if len(properties) > 0 {
		m.Optional += len(properties) - len(o.list("required"))
	}
	for _, name := range append(properties[:len(properties):len(properties)], o.object("$defs").names...) {
		m.Text += len(name)
	}
	m.Values += len(o.list("enum"))
	text := 0
	for _, value := range o.list("enum") {
		s, _ := value.(string)
		text += len(s)
	}
	m.Text += text
	if len(o.list("enum")) > 250 {
		m.LongEnum = max(m.LongEnum, text)
	}
	if o.has("anyOf") || len(o.list("type")) > 1 {
		m.Unions++
	}
	o.mapSchemas(func(keyword string, node any) any {
		below, ok := node.(*object)
		switch {
		case !ok:
		case keyword == "$defs":
			m.measure(below, 1)
		case below.values["type"] == "object" || below.values["type"] == "array":
			m.measure(below, depth+1)
		default:
			m.measure(below, depth)
		}
		return node
	})
}
