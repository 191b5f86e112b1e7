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

// omitted reports whether encoding/json omits the field if its value is empty.
func (f field) omitted() bool { return f.OmitEmpty || f.OmitZero }

// quoted reports whether the field is a number, boolean or string that encoding/json encodes inside a string.
func (f field) quoted() bool {
	t := f.Type
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	return f.String && (t == reflect.TypeFor[json.Number]() || byMethod(t, f.Type != t) == nil)
}

// Closed returns the schema for the same objects in the form in which tools declare their arguments: null is not allowed, and
// additionalProperties is false unless the schema specifies it. Closed returns an error if the type of the schema is not object.
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
