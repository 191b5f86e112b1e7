package schema

import (
	"encoding/json"
	"strings"
)

// A shape is a schema of types, properties and items alone, like the schemas of most Go types. A value
// that fits is valid, and the validator, which takes ten times as long, is not needed; it explains
// the faults of other values. The benchmark "call with schemas, checks and a gate" takes 10 %
// longer without shape, and 50 % longer without quick.
type shape struct {
	types      kinds // none is any
	properties map[string]*shape
	rest       *shape // of other properties
	closed     bool   // other properties are forbidden
	required   []string
	items      *shape
}

type kinds uint8

const (
	nullKind kinds = 1 << iota
	boolKind
	integerKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

var kindNames = map[string]kinds{
	"null": nullKind, "boolean": boolKind, "integer": integerKind, "number": numberKind | integerKind,
	"string": stringKind, "array": arrayKind, "object": objectKind,
}

// shapeOf returns the shape of a schema's text, or nil if the schema has other keywords.
func shapeOf(text []byte) *shape {
	var node any
	if json.Unmarshal(text, &node) != nil {
		return nil
	}
	s, _ := newShape(node)
	return s
}

func newShape(node any) (*shape, bool) {
	if node == true {
		return &shape{}, true
	}
	fields, ok := node.(map[string]any)
	if !ok {
		return nil, false
	}
	s := &shape{}
	for name, value := range fields {
		switch name {
		case "type":
			ok = s.readTypes(value)
		case "required":
			ok = s.readRequired(value)
		case "properties":
			ok = s.readProperties(value)
		case "items":
			s.items, ok = newShape(value)
		case "additionalProperties":
			if s.closed = value == false; !s.closed {
				s.rest, ok = newShape(value)
			}
		case "title", "description":
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return s, true
}

func (s *shape) readTypes(value any) bool {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for _, name := range list {
		text, _ := name.(string)
		s.types |= kindNames[text]
	}
	return s.types != 0
}

func (s *shape) readRequired(value any) bool {
	list, ok := value.([]any)
	for _, name := range list {
		text, isText := name.(string)
		s.required, ok = append(s.required, text), ok && isText
	}
	return ok
}

func (s *shape) readProperties(value any) bool {
	fields, ok := value.(map[string]any)
	s.properties = make(map[string]*shape, len(fields))
	for name, node := range fields {
		var one bool
		s.properties[name], one = newShape(node)
		ok = ok && one
	}
	return ok
}

// fits reports whether a decoded document is certainly valid.
func (s *shape) fits(v any) bool {
	switch v := v.(type) {
	case nil:
		return s.takes(nullKind)
	case bool:
		return s.takes(boolKind)
	case string:
		return s.takes(stringKind)
	case json.Number:
		return s.takes(numberKind) || s.takes(integerKind) && !strings.ContainsAny(string(v), ".eE")
	case []any:
		return s.takes(arrayKind) && s.fitsItems(v)
	case map[string]any:
		return s.takes(objectKind) && s.fitsProperties(v)
	}
	return false
}

func (s *shape) takes(k kinds) bool { return s.types == 0 || s.types&k != 0 }

func (s *shape) fitsItems(list []any) bool {
	if s.items == nil {
		return true
	}
	for _, v := range list {
		if !s.items.fits(v) {
			return false
		}
	}
	return true
}

func (s *shape) fitsProperties(fields map[string]any) bool {
	for _, name := range s.required {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	for name, v := range fields {
		p, ok := s.properties[name]
		if !ok {
			if s.closed {
				return false
			}
			p = s.rest
		}
		if p != nil && !p.fits(v) {
			return false
		}
	}
	return true
}
