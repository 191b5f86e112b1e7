package jsonv2

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

// Reason returns an explanation of where and why JSON text could not be unmarshaled, without mentioning Go types.
func Reason(err error) string {
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return strings.TrimPrefix(err.Error(), "jsontext: ")
	}
	var what string
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		what = "unknown member " + string(e.JSONPointer)
		if known := members(e.GoType); len(known) > 0 {
			what += ": known are " + strings.Join(known, ", ")
		}
		return what
	case e.Err != nil:
		what = e.Err.Error()
	case e.GoType != nil:
		what = "want " + wanted(e.GoType) + ", not " + found[e.JSONKind.String()]
	default:
		return err.Error()
	}
	if e.JSONPointer != "" {
		what += " at " + string(e.JSONPointer)
	}
	return what
}

// members returns the names of a struct's JSON members, in the order of declaration.
func members(t reflect.Type) (names []string) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// found maps the kinds of JSON values to their names in messages.
var found = map[string]string{
	"null": "null", "false": "false", "true": "true", "string": "a string", "number": "a number", "{": "an object", "[": "an array",
}

// wanted returns the name, as used in messages, of the kind of JSON value from which a type is decoded.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return t.String()
}
