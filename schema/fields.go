package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/stonelayer/stone/internal/fields"
)

// field is a struct field as encoding/json sees it.
type field struct{ fields.Field }

// fieldsOf returns the fields that encoding/json writes for a struct, in declared order.
func fieldsOf(t reflect.Type) []field {
	of := fields.Of(t)
	all := make([]field, len(of))
	for i, f := range of {
		all[i] = field{f}
	}
	return all
}

// omitted reports whether the field is left out when it is empty.
func (f field) omitted() bool { return f.OmitEmpty || f.OmitZero }

// quoted reports whether the field is a number, boolean or string that is encoded inside a string.
func (f field) quoted() bool {
	t := f.Type
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	return f.String && (t == reflect.TypeFor[json.Number]() || byMethod(t, f.Type != t) == nil)
}

// Closed returns a schema for the same objects in the form in which tools declare their arguments: null is not allowed, and
// additionalProperties is false unless the schema states it. It is an error if the schema does not have the type object.
func (s *Schema) Closed() (*Schema, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(s.JSON(), &o); err != nil || !strings.Contains(string(o["type"]), `"object"`) {
		return nil, errors.New("want the schema of an object")
	}
	o["type"] = json.RawMessage(`"object"`)
	if _, open := o["additionalProperties"]; !open {
		o["additionalProperties"] = json.RawMessage("false")
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}
