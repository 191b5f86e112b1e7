package schema

import (
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// seen records which properties or items of a value some keyword has evaluated, for unevaluatedProperties and unevaluatedItems. A
// nil *seen records nothing.
type seen struct {
	names map[string]bool
	items map[int]bool
	all   bool // whether every item has been evaluated
}

func (s *seen) name(name string) {
	if s != nil {
		if s.names == nil {
			s.names = map[string]bool{}
		}
		s.names[name] = true
	}
}

func (s *seen) item(i int) {
	if s != nil {
		if s.items == nil {
			s.items = map[int]bool{}
		}
		s.items[i] = true
	}
}

func (s *seen) everyItem() {
	if s != nil {
		s.all = true
	}
}

func (s *seen) add(other *seen) {
	for name := range other.names {
		s.name(name)
	}
	for i := range other.items {
		s.item(i)
	}
	s.all = s.all || other.all
}

// object checks the properties of an object and their names.
func (w *walk) object(s *jsonschema.Schema, fields map[string]any, into *seen) bool {
	ok := true
	var more []string
	for name, value := range fields {
		fits, allowed := w.property(s, name, value, into)
		if !allowed {
			more = append(more, name)
		}
		if ok = ok && fits && allowed; !ok && !w.explain {
			return false
		}
	}
	if len(more) > 0 {
		slices.Sort(more)
		w.fail(s, &kind.AdditionalProperties{Properties: more[:min(len(more), maxProblems)]})
	}
	if s.PropertyNames != nil {
		for name := range fields {
			if fits, found := w.apart(s.PropertyNames, name); !fits {
				ok = w.fail(s.PropertyNames, &kind.PropertyNames{Property: name}, found...)
			}
		}
	}
	for name, one := range s.Dependencies {
		if below, is := one.(*jsonschema.Schema); is && has(fields, name) {
			ok = w.on(below, fields, into) && ok
		}
	}
	for name, below := range s.DependentSchemas {
		if has(fields, name) {
			ok = w.on(below, fields, into) && ok
		}
	}
	return ok
}

func has(fields map[string]any, name string) bool {
	_, ok := fields[name]
	return ok
}

// property checks one property with the schemas for its name and for all patterns that match the name. If there are none, it
// checks the property as an additional property.
func (w *walk) property(s *jsonschema.Schema, name string, value any, into *seen) (fits, allowed bool) {
	fits = true
	evaluated := false
	if below := s.Properties[name]; below != nil {
		evaluated = true
		fits = w.child(below, value, name)
	}
	for p, below := range s.PatternProperties {
		if w.matches(p, name) {
			evaluated = true
			fits = w.child(below, value, name) && fits
		}
	}
	if !evaluated && s.AdditionalProperties != nil {
		evaluated = true
		switch more := s.AdditionalProperties.(type) {
		case bool:
			if !more {
				return fits, false
			}
		case *jsonschema.Schema:
			fits = w.child(more, value, name)
		}
	}
	if evaluated {
		into.name(name)
	}
	return fits, true
}

// array checks the items of an array.
func (w *walk) array(s *jsonschema.Schema, items []any, into *seen) bool {
	first, rest := s.PrefixItems, any(s.Items2020)
	if s.DraftVersion < 2020 {
		if list, is := s.Items.([]*jsonschema.Schema); is {
			first, rest = list, s.AdditionalItems
		} else {
			first, rest = nil, s.Items
		}
	}
	ok := true
	n := min(len(first), len(items))
	for i, item := range items[:n] {
		into.item(i)
		ok = w.child(first[i], item, strconv.Itoa(i)) && ok
	}
	switch rest := rest.(type) {
	case bool:
		into.everyItem()
		if !rest && len(items) > n {
			ok = w.fail(s, &kind.AdditionalItems{Count: len(items) - n})
		}
	case *jsonschema.Schema:
		if rest == nil {
			break
		}
		into.everyItem()
		for i, item := range items[n:] {
			if ok = w.child(rest, item, strconv.Itoa(n+i)) && ok; !ok && !w.explain {
				return false
			}
		}
	}
	return (s.Contains == nil || w.contains(s, items, into)) && ok
}

func (w *walk) contains(s *jsonschema.Schema, items []any, into *seen) bool {
	var matched []int
	for i, item := range items {
		if w.quietly(func() bool { return w.child(s.Contains, item, strconv.Itoa(i)) }) {
			matched = append(matched, i)
			if s.DraftVersion >= 2020 {
				into.item(i)
			}
		}
	}
	ok := true
	switch {
	case s.MinContains != nil && len(matched) < *s.MinContains:
		ok = w.fail(s, &kind.MinContains{Got: matched, Want: *s.MinContains})
	case s.MinContains == nil && len(matched) == 0:
		ok = w.fail(s, &kind.Contains{})
	}
	if s.MaxContains != nil && len(matched) > *s.MaxContains {
		ok = w.fail(s, &kind.MaxContains{Got: matched, Want: *s.MaxContains})
	}
	return ok
}

// combined checks the keywords not, allOf, anyOf and oneOf. For anyOf and oneOf, it collects errors only if the value fits none
// of the alternatives.
func (w *walk) combined(s *jsonschema.Schema, v any, into *seen) bool {
	ok := true
	if s.Not != nil && w.quietly(func() bool { return w.on(s.Not, v, nil) }) && w.stop == nil {
		ok = w.fail(s, &kind.Not{})
	}
	for _, one := range s.AllOf {
		if ok = w.on(one, v, into) && ok; !ok && !w.explain {
			return false
		}
	}
	if len(s.AnyOf) > 0 && len(w.fitting(s.AnyOf, v, into, 1)) == 0 {
		ok = w.fail(s, &kind.AnyOf{}, w.reasons(s.AnyOf, v)...)
	}
	if len(s.OneOf) > 0 {
		switch fit := w.fitting(s.OneOf, v, into, 2); len(fit) {
		case 0:
			ok = w.fail(s, &kind.OneOf{}, w.reasons(s.OneOf, v)...)
		case 2:
			ok = w.fail(s, &kind.OneOf{Subschemas: fit})
		}
	}
	return ok
}

// fitting returns the indexes of the schemas that a value fits. It stops once the value fits enough schemas, unless it must
// record the parts that every fitting schema evaluates.
func (w *walk) fitting(list []*jsonschema.Schema, v any, into *seen, enough int) (fit []int) {
	for i, one := range list {
		if w.quietly(func() bool { return w.on(one, v, into) }) {
			fit = append(fit, i)
		}
		if len(fit) == enough && (into == nil || enough > 1) {
			break
		}
	}
	return fit
}

// reasons returns, for each of the schemas, the error that explains why the value does not fit.
func (w *walk) reasons(list []*jsonschema.Schema, v any) (out []*jsonschema.ValidationError) {
	if !w.explain {
		return nil
	}
	for _, one := range list {
		switch found := w.causes(func() { w.on(one, v, nil) }); len(found) {
		case 0:
		case 1:
			out = append(out, found[0])
		default:
			out = append(out, &jsonschema.ValidationError{SchemaURL: one.Location, InstanceLocation: slices.Clone(w.at), ErrorKind: &kind.Group{}, Causes: found})
		}
	}
	return out
}

// unevaluated checks the properties or items that no other keyword has evaluated.
func (w *walk) unevaluated(s *jsonschema.Schema, v any, seen *seen) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			break
		}
		for name, value := range v {
			if !seen.names[name] {
				seen.name(name)
				ok = w.child(s.UnevaluatedProperties, value, name) && ok
			}
		}
	case []any:
		if s.UnevaluatedItems == nil || seen.all {
			break
		}
		for i, item := range v {
			if !seen.items[i] {
				ok = w.child(s.UnevaluatedItems, item, strconv.Itoa(i)) && ok
			}
		}
		seen.everyItem()
	}
	return ok
}
