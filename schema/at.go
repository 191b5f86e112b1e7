package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// At returns the schema of the value at a path of property names and array indexes (as digits). It follows references and
// alternatives. If several schemas are possible, it returns their anyOf. At returns false only if the path is certain not to exist,
// that is, if an object schema lists its properties, does not list the name, and does not mention further properties. If the path
// may have any value, At returns a nil *Schema, which accepts any value.
func (s *Schema) At(path ...string) (*Schema, bool) {
	if s == nil || len(path) == 0 {
		return s, true
	}
	var key strings.Builder
	for _, step := range path {
		key.WriteString(strconv.Itoa(len(step)) + ":" + step)
	}
	if found, ok := s.places.get(key.String()); ok {
		return found, true
	}
	nodes := []any{s.root}
	for _, step := range path {
		var next []any
		budget := maxBranches
		for _, node := range nodes {
			below, there := s.step(s.view(node), step, &budget)
			if there == unknown {
				return s.places.put(key.String(), nil), true
			}
			next = append(next, below...)
		}
		if len(next) == 0 {
			return nil, false
		}
		nodes = next
	}
	return s.places.put(key.String(), s.extract(distinct(nodes))), true
}

// maxBranches is the maximum number of alternatives to try, because a schema may be hostile. If there are more, any value is
// considered possible.
const maxBranches = 1000

// step descends by one name, and returns the possible schemas there.
func (s *Schema) step(v view, name string, budget *int) ([]any, presence) {
	index, err := strconv.Atoi(name)
	isIndex := err == nil && index >= 0
	types, known := v.types()
	isArray := isIndex && (!known || slices.Contains(types, "array"))
	switch *budget--; {
	case v.never, known && !slices.Contains(types, "object") && !isArray:
		return nil, never
	case *budget < 0:
		return nil, unknown
	}
	if rest, list := v.alternatives(); list != nil {
		var found []any
		for _, alternative := range list {
			below, there := s.step(rest.and(s.view(alternative)), name, budget)
			if there == unknown {
				return nil, unknown
			}
			found = append(found, below...)
		}
		if len(found) == 0 {
			return nil, never
		}
		return found, declared
	}
	nodes, there := v.property(name)
	switch {
	case there == declared:
	case isArray:
		nodes = v.items(index)
	case there == unknown:
		nodes = v.mapValues()
	}
	switch {
	case slices.Contains(nodes, any(false)):
		return nil, never
	case len(nodes) == 1:
		return nodes, declared
	case len(nodes) > 1:
		return []any{newObject("allOf", nodes)}, declared
	case isArray || v.vague:
		return nil, unknown
	}
	return nil, there
}

func distinct(nodes []any) []any {
	var out []any
	for _, n := range nodes {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Properties returns the names of the object properties that the schema lists in any of its alternatives, sorted.
func (s *Schema) Properties() []string {
	names := map[string]bool{}
	if s != nil {
		budget := maxBranches
		s.branches(s.view(s.root), &budget, func(v view) {
			for _, part := range v.parts {
				for _, name := range part.object("properties").names {
					names[name] = true
				}
			}
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// Enum returns all values that the schema allows, and reports whether it allows only a closed list of values. Each value is a
// string, bool, nil, json.Number, []any or map[string]any. The type boolean counts as the list of true and false. If every
// alternative of the schema has a list, Enum joins these lists.
func (s *Schema) Enum() (values []any, ok bool) {
	if s == nil {
		return nil, false
	}
	budget, closed := maxBranches, true
	s.branches(s.view(s.root), &budget, func(v view) {
		own, listed := v.values()
		if types, known := v.types(); known && !listed {
			own, listed = fewValues(types)
		}
		closed = closed && listed
		for _, value := range own {
			if !containsValue(values, value) {
				values = append(values, value)
			}
		}
	})
	if !closed || budget < 0 {
		return nil, false
	}
	for i, value := range values {
		values[i] = plain(value)
	}
	return values, true
}

// fewValues returns all values of the given types if these are only boolean and null.
func fewValues(types []string) (values []any, ok bool) {
	for _, t := range types {
		switch t {
		case "boolean":
			values = append(values, true, false)
		case "null":
			values = append(values, nil)
		default:
			return nil, false
		}
	}
	return values, true
}

// Encoding returns the contentEncoding and the contentMediaType that the schema states for strings, each "" if it states none. If
// the schema has alternatives, Encoding uses the first one that states either of the two.
func (s *Schema) Encoding() (encoding, mediaType string) {
	if s == nil {
		return "", ""
	}
	budget := maxBranches
	s.branches(s.view(s.root), &budget, func(v view) {
		for _, part := range v.parts {
			own := func(name, known string) string {
				if text, ok := part.values[name].(string); ok && known == "" {
					return text
				}
				return known
			}
			encoding, mediaType = own("contentEncoding", encoding), own("contentMediaType", mediaType)
		}
	})
	return encoding, mediaType
}

// branches calls f with each combination of the alternatives in the view.
func (s *Schema) branches(v view, budget *int, f func(view)) {
	if *budget--; *budget < 0 || v.never {
		return
	}
	rest, list := v.alternatives()
	if list == nil {
		f(v)
		return
	}
	for _, alternative := range list {
		s.branches(rest.and(s.view(alternative)), budget, f)
	}
}

// plain converts a value in a tree to the types that encoding/json uses.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case *object:
		out := make(map[string]any, len(v.names))
		for _, name := range v.names {
			out[name] = plain(v.values[name])
		}
		return out
	}
	return v
}
