package schema

import (
	"encoding/json"
	"slices"
	"strconv"
)

// presence says whether the producer's values have a property.
type presence int

const (
	unknown  presence = iota // the property may exist; the schema does not mention it
	declared                 // the property is listed
	never                    // the property is forbidden, or the schema lists other properties only
)

// property returns the nodes that describe the named property of the producer's objects, and whether the objects have it.
func (v view) property(name string) ([]any, presence) {
	var nodes []any
	var listed, open, closed bool
	for _, part := range v.parts {
		additional, says := part.values["additionalProperties"]
		switch {
		case part.object("properties").has(name):
			listed = true
			nodes = append(nodes, part.object("properties").values[name])
		case part.has("patternProperties"):
			open = true
		case says && additional == false:
			closed = true
		case says:
			open = true
		}
	}
	switch {
	case slices.Contains(nodes, any(false)) || closed:
		return nil, never
	case listed:
		return nodes, declared
	case !open && slices.ContainsFunc(v.parts, func(o *object) bool { return o.has("properties") }):
		return nil, never
	}
	return nil, unknown
}

// property is like view.property, except that it returns never for a property that cannot have a value.
func (c *comparison) property(v view, name string) ([]any, presence) {
	nodes, there := v.property(name)
	if there == declared && c.empty(c.producer.view(nodes...), 0) {
		return nil, never
	}
	return nodes, there
}

// maxNested is the maximum depth at which empty checks required properties and items.
const maxNested = 4

// empty reports whether it is certain that no value matches a view of the producer.
func (c *comparison) empty(v view, depth int) bool {
	if v.never {
		return true
	}
	if c.steps++; c.steps > maxSteps || depth > maxNested || len(v.parts) > maxParts {
		return false
	}
	if rest, list := v.alternatives(); list != nil {
		return !slices.ContainsFunc(list, func(alternative any) bool {
			return !c.empty(rest.and(c.producer.view(alternative)), depth+1)
		})
	}
	if values, closed := v.values(); closed {
		return len(values) == 0
	}
	types, known := v.types()
	return known && !slices.ContainsFunc(types, func(t string) bool {
		return t != "object" && t != "array" || t == "object" && c.hasObjects(v, depth) || t == "array" && c.hasArrays(v, depth)
	})
}

// hasObjects reports whether each required property can have a value.
func (c *comparison) hasObjects(v view, depth int) bool {
	for _, part := range v.parts {
		for _, name := range part.strings("required") {
			nodes, there := v.property(name)
			if there == never || there == declared && c.empty(c.producer.view(nodes...), depth+1) {
				return false
			}
		}
	}
	return true
}

// hasArrays reports whether each required item can have a value.
func (c *comparison) hasArrays(v view, depth int) bool {
	least, most := v.lengths()
	for i := range min(least, maxNested) {
		if c.empty(c.producer.view(v.items(i)...), depth+1) {
			return false
		}
	}
	return least <= most
}

// mapValues returns the nodes that describe the values of properties that are not listed by name.
func (v view) mapValues() []any {
	var nodes []any
	for _, part := range v.parts {
		if o, ok := part.values["additionalProperties"].(*object); ok {
			nodes = append(nodes, o)
		}
	}
	return nodes
}

func (c *comparison) readObject(p view, part *object) []finding {
	var out []finding
	for _, name := range part.strings("required") {
		if p.requires(name) {
			continue
		}
		switch _, there := c.property(p, name); there {
		case declared:
			out = append(out, finding{Problem{propertyPath(name), "required, but the producer may leave it out"}, false, false})
		case never:
			out = append(out, finding{Problem{propertyPath(name), "required, but the producer never writes it"}, true, false})
		}
	}
	values := p.mapValues()
	for _, name := range part.object("properties").names {
		if _, there := p.property(name); there == unknown && len(values) > 0 && slices.Contains(part.strings("required"), name) {
			found := c.read(values, part.object("properties").values[name])
			out = append(out, below(propertyPath(name), found, false)...)
		}
	}
	if o, ok := part.values["additionalProperties"].(*object); ok && len(values) > 0 {
		out = append(out, below("[*]", c.read(values, o), false)...)
	}
	return append(out, c.readProperties(p, part)...)
}

// readProperties compares each listed property of the producer with the consumer's schemas for it.
func (c *comparison) readProperties(p view, part *object) []finding {
	var out []finding
	done := map[string]bool{}
	for _, source := range p.parts {
		for _, name := range source.object("properties").names {
			nodes, there := c.property(p, name)
			if there != declared || done[name] {
				continue
			}
			done[name] = true
			wanted, listed := part.object("properties").values[name]
			if !listed {
				if part.has("patternProperties") {
					continue
				}
				if wanted = part.values["additionalProperties"]; wanted == nil {
					continue
				}
			}
			if wanted == false {
				out = append(out, finding{Problem{propertyPath(name), "the producer writes it, but the consumer allows no such property"},
					p.requires(name), false})
				continue
			}
			out = append(out, below(propertyPath(name), c.read(nodes, wanted), p.requires(name))...)
		}
	}
	return out
}

// below returns findings with step prepended to their paths. These still concern all values only if every value has the part at
// this step.
func below(step string, found []finding, sure bool) []finding {
	out := make([]finding, len(found))
	for i, f := range found {
		out[i] = finding{Problem{joinPath(step, f.Path), f.Message}, f.all && sure, false}
	}
	return out
}

// readArray compares the items: first the items that have their own schema, then all others.
func (c *comparison) readArray(p view, part *object) []finding {
	var out []finding
	ownPlaces := len(part.list("prefixItems"))
	for _, source := range p.parts {
		ownPlaces = max(ownPlaces, len(source.list("prefixItems")))
	}
	least, most := p.lengths()
	for i := range ownPlaces {
		if c.empty(c.producer.view(p.items(i)...), 0) {
			most = min(most, i)
		}
		wanted := itemAt(part, i)
		if nodes := p.items(i); len(nodes) > 0 && wanted != nil && i < most {
			out = append(out, below("["+strconv.Itoa(i)+"]", c.read(nodes, wanted), i < least)...)
		}
	}
	wanted := itemAt(part, ownPlaces)
	if nodes := p.items(ownPlaces); len(nodes) > 0 && wanted != nil && ownPlaces < most {
		out = append(out, below("[*]", c.read(nodes, wanted), ownPlaces < least)...)
	}
	return out
}

// items returns the nodes that describe the i-th item of an array.
func (v view) items(i int) []any {
	var nodes []any
	for _, part := range v.parts {
		if node := itemAt(part, i); node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func itemAt(o *object, i int) any {
	if prefix := o.list("prefixItems"); i < len(prefix) {
		return prefix[i]
	}
	if list, old := o.values["items"].([]any); old { // form used up to draft 2019-09
		if i < len(list) {
			return list[i]
		}
		return o.values["additionalItems"]
	}
	return o.values["items"]
}

// lengths returns the minimum and the maximum number of items.
func (v view) lengths() (least, most int) {
	most = int(^uint(0) >> 1)
	for _, part := range v.parts {
		if n, ok := part.values["minItems"].(json.Number); ok {
			if i, err := strconv.Atoi(string(n)); err == nil {
				least = max(least, i)
			}
		}
		if n, ok := part.values["maxItems"].(json.Number); ok {
			if i, err := strconv.Atoi(string(n)); err == nil {
				most = min(most, i)
			}
		}
	}
	return least, most
}
