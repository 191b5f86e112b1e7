package schema

import (
	"maps"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A graph contains the data that a walk needs about a compiled schema. It has an entry for each schema that can be reached from the
// root.
type graph struct {
	root    *jsonschema.Schema
	about   map[*jsonschema.Schema]*about
	dynamic bool // a reference exists whose target depends on the path that led to it
}

// about contains the data that a walk needs about one schema.
type about struct {
	own      *jsonschema.Schema // keywords about the value itself, which the library checks; nil if there are none
	resource *resource
	referred bool // a reference leads to the schema
}

// A resource is a schema with its own address, and everything below it.
type resource struct {
	anchors   map[string]*jsonschema.Schema // schemas with a $dynamicAnchor, by the name of the anchor
	recursive *jsonschema.Schema            // root of the resource if it has $recursiveAnchor, otherwise nil
}

// newGraph collects the schemas that can be reached from root. It finds the resources in document, which is the decoded text of
// the schema. The function compile returns the schema at a place in the document.
func newGraph(root *jsonschema.Schema, document any, compile func(fragment string) (*jsonschema.Schema, error)) *graph {
	g := &graph{root: root, about: map[*jsonschema.Schema]*about{}}
	g.add(root)
	if g.dynamic {
		eachAnchored(document, "", func(fragment string) {
			// A place that cannot be compiled is a value, such as the value of const.
			if s, err := compile(fragment); err == nil {
				g.add(s)
			}
		})
	}
	resources := map[string]*resource{}
	for s := range g.about {
		if address, fragment, _ := strings.Cut(s.Location, "#"); fragment == "" {
			resources[address+"#"] = &resource{}
		} else if s.ID != "" && s.DraftVersion >= 2019 {
			resources[s.Location] = &resource{}
		}
	}
	g.markReferred()
	for s, a := range g.about {
		a.resource = enclosing(resources, s.Location)
		if s.DynamicAnchor != "" {
			if a.resource.anchors == nil {
				a.resource.anchors = map[string]*jsonschema.Schema{}
			}
			a.resource.anchors[s.DynamicAnchor] = s
		}
		if s.RecursiveAnchor && resources[s.Location] == a.resource {
			a.resource.recursive = s
		}
	}
	return g
}

var pointerTokens = strings.NewReplacer("~", "~0", "/", "~1")

// eachAnchored calls do with the place of each object that has an address or a dynamic anchor.
func eachAnchored(node any, fragment string, do func(fragment string)) {
	switch node := node.(type) {
	case map[string]any:
		_, id := node["$id"].(string)
		_, anchor := node["$dynamicAnchor"].(string)
		if id || anchor {
			do(fragment)
		}
		for name, below := range node {
			eachAnchored(below, fragment+"/"+url.PathEscape(pointerTokens.Replace(name)), do)
		}
	case []any:
		for i, below := range node {
			eachAnchored(below, fragment+"/"+strconv.Itoa(i), do)
		}
	}
}

// enclosing returns the innermost resource around a location. If the map contains none, enclosing adds a resource for the whole
// address.
func enclosing(resources map[string]*resource, location string) *resource {
	for {
		if r := resources[location]; r != nil {
			return r
		}
		address, fragment, _ := strings.Cut(location, "#")
		cut := strings.LastIndexByte(fragment, '/')
		if cut < 0 {
			r := &resource{}
			resources[location] = r
			return r
		}
		location = address + "#" + fragment[:cut]
	}
}

// add adds a schema and everything below it.
func (g *graph) add(s *jsonschema.Schema) {
	todo := []*jsonschema.Schema{s}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s == nil || g.about[s] != nil {
			continue
		}
		g.about[s] = &about{own: ownOf(s)}
		g.dynamic = g.dynamic || s.DynamicRef != nil && s.DynamicRef.Anchor != "" || s.RecursiveRef != nil
		todo = append(todo, named(s)...)
	}
}

// markReferred finds the schemas that can be applied to a value in several ways. Only these schemas can make the work on the
// value more than polynomial, and only through them can a schema contain itself.
func (g *graph) markReferred() {
	for s, a := range g.about {
		a.referred = a.referred || s.DynamicAnchor != "" || s.RecursiveAnchor
		to := []*jsonschema.Schema{s.Ref, s.RecursiveRef}
		if s.DynamicRef != nil {
			to = append(to, s.DynamicRef.Ref)
		}
		for _, one := range to {
			if one != nil {
				g.about[one].referred = true
			}
		}
	}
}

// named returns the schemas to which s refers.
func named(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames,
		s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		out = append(out, list...)
	}
	for _, m := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for one := range maps.Values(m) {
			out = append(out, one)
		}
	}
	for one := range maps.Values(s.PatternProperties) {
		out = append(out, one)
	}
	for one := range maps.Values(s.Dependencies) {
		out = append(out, schemasIn(one)...)
	}
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	for _, v := range []any{s.Items, s.AdditionalItems, s.AdditionalProperties} {
		out = append(out, schemasIn(v)...)
	}
	return out
}

// schemasIn returns the schemas in v, the value of a field that may also contain other types.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// ownOf returns a schema with the keywords of s that concern the value itself and not its parts, or nil if there are none.
func ownOf(s *jsonschema.Schema) *jsonschema.Schema {
	if s.DraftVersion < 2019 && s.Ref != nil {
		return nil
	}
	blank := jsonschema.Schema{DraftVersion: s.DraftVersion, Location: s.Location}
	own := blank
	own.Types, own.Enum, own.Const, own.Format = s.Types, s.Enum, s.Const, s.Format
	own.MaxProperties, own.MinProperties, own.Required, own.DependentRequired = s.MaxProperties, s.MinProperties, s.Required, s.DependentRequired
	own.MinItems, own.MaxItems, own.UniqueItems = s.MinItems, s.MaxItems, s.UniqueItems
	own.MinLength, own.MaxLength, own.ContentEncoding = s.MinLength, s.MaxLength, s.ContentEncoding
	if s.ContentSchema == nil {
		own.ContentMediaType = s.ContentMediaType
	}
	own.Maximum, own.Minimum, own.ExclusiveMaximum, own.ExclusiveMinimum, own.MultipleOf = s.Maximum, s.Minimum, s.ExclusiveMaximum, s.ExclusiveMinimum, s.MultipleOf
	for name, v := range s.Dependencies {
		if _, ok := v.([]string); ok {
			if own.Dependencies == nil {
				own.Dependencies = map[string]any{}
			}
			own.Dependencies[name] = v
		}
	}
	if reflect.DeepEqual(own, blank) {
		return nil
	}
	return &own
}
