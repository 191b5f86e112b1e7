package schema

import (
	"slices"
	"strconv"
	"strings"
)

// extract returns a separate schema that consists of nodes from the tree and the definitions to which they refer. If one of the
// nodes accepts any value, extract returns nil, which also accepts any value.
func (s *Schema) extract(nodes []any) *Schema {
	e := extraction{from: s, places: map[string]string{}, defs: newObject()}
	for i, node := range nodes {
		if o, ok := node.(*object); node == true || ok && len(o.names) == 0 {
			return nil
		}
		nodes[i] = e.copy("", node)
	}
	root := nodes[0]
	if len(nodes) > 1 {
		root = newObject("anyOf", nodes)
	}
	if o, ok := root.(*object); ok {
		if len(e.defs.names) > 0 {
			o.set("$defs", e.defs)
		}
		if whole, ok := s.root.(*object); ok && whole.has("$schema") {
			o.set("$schema", whole.values["$schema"])
		}
	}
	return newSchema(root)
}

// extraction copies nodes and moves the targets of their references into $defs.
type extraction struct {
	from   *Schema
	places map[string]string // new reference for each reference in the old tree
	defs   *object
}

func (e *extraction) copy(_ string, node any) any {
	o, ok := node.(*object)
	if !ok {
		return node
	}
	without := o
	if slices.ContainsFunc([]string{"$defs", "definitions", "$id", "$schema"}, o.has) {
		without = newObject()
		for _, name := range o.names {
			if name != "$defs" && name != "definitions" && name != "$id" && name != "$schema" {
				without.set(name, o.values[name])
			}
		}
	}
	out := without.mapSchemas(e.copy)
	if ref, ok := out.values["$ref"].(string); ok {
		if place, ok := e.place(ref); ok {
			out.set("$ref", place)
		} else {
			out.remove("$ref") // the target is unknown, so the copy accepts any value
		}
	}
	out.remove("$dynamicRef")
	return out
}

// place copies the target of a reference into the new tree and returns its new reference.
func (e *extraction) place(ref string) (string, bool) {
	if place, ok := e.places[ref]; ok {
		return place, true
	}
	target, ok := e.from.follow(ref)
	if !ok {
		return "", false
	}
	last := ref[strings.LastIndexAny(ref, "/#")+1:]
	name := strings.Trim(notInName.ReplaceAllString(last, "_"), "_")
	if name == "" {
		name = "root"
	}
	for base, n := name, 2; e.defs.has(name); n++ {
		name = base + strconv.Itoa(n)
	}
	e.places[ref] = "#/$defs/" + name
	e.defs.set(name, true) // reserves the name while the copy is made
	e.defs.set(name, e.copy("", target))
	return e.places[ref], true
}
