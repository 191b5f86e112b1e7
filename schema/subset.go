package schema

import (
	"errors"
	"fmt"
)

// A Subset is the part of JSON Schema that a service can enforce on its output.
type Subset struct {
	// Accepts reports whether the service supports a keyword with the given value: a limit, a pattern, a format, or one value of an
	// enum. The value is a string, a bool or a json.Number.
	Accepts func(keyword string, value any) bool
	// Name reports whether a property may have the given name. If Name is nil, every name is allowed.
	Name func(string) bool
	// AllRequired means that every property must be required. An optional property is then required, but may be null.
	AllRequired bool
	// Maps means that the service can enforce objects with arbitrary property names, such as Go maps.
	Maps bool
	// Exact means that the enforced schema must have the same meaning as the original. Therefore every object with listed
	// properties must be closed in the original and, with AllRequired, all its properties must be required.
	Exact bool
	// Cycles says where a schema may refer to itself: nowhere if "", below optional properties if "optional", or everywhere if
	// "all".
	Cycles string
	// Encode means that a part is encoded in another form if it cannot be enforced: an object with arbitrary property names becomes
	// a list of members, a property with a rejected name gets a different name, and any other part becomes JSON text.
	// [Schema.Restore] converts values back.
	Encode bool
	Max    SubsetLimits
}

// SubsetLimits contains the limits on the size of a schema. For each field, zero means unlimited.
type SubsetLimits struct {
	Depth      int // nesting depth of objects and arrays
	Properties int // total properties in all objects
	Optional   int // number of properties that are not required
	Unions     int // number of schemas with several types or alternatives
	Values     int // total values in all enums
	Text       int // total length of enum values and of the names of properties and definitions, in bytes
	LongEnum   int // total string length, in bytes, of an enum with more than 250 values
}

// Project returns the JSON text of the schema in the form that the service enforces. Each object with listed properties is
// closed, oneOf becomes anyOf, and a $ref has no siblings. Null is not allowed where an empty slice or map, or the absence of a
// property, has the same meaning. Constraints that the service does not support become part of the value's description. Properties
// keep their order.
//
// A value that matches the result need not match the schema, so callers must validate it. A null that the schema does not allow
// means an absent property; see [Schema.Restore].
//
// If the service cannot enforce a part of the schema, such as a value of any type or an object with arbitrary property names, the
// error names that part. With Encode, such parts are encoded, so Project returns an error only if the value as a whole cannot be
// enforced or the result is too large.
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

// begin parses the text of a schema.
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

// check returns an error if the size of a projected schema exceeds the limits.
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

// SizeOf returns the size of a projected schema, given as JSON text.
func SizeOf(projected []byte) (size SubsetLimits) {
	if node, err := decode(projected); err == nil {
		if root, ok := node.(*object); ok {
			size.measure(root, 1)
		}
	}
	return size
}

// measure adds the size of a projected schema to the receiver.
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
