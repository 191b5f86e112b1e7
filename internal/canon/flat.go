package canon

import (
	"encoding"
	"encoding/json"
	"reflect"
)

var methodsForJSON = []reflect.Type{
	marshalerType,
	textMarshalerType,
	reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
}

// isFlat implements Encoder.Flat.
func isFlat(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	for _, m := range methodsForJSON {
		if pointer.Implements(m) {
			return false
		}
	}
	switch k := t.Kind(); {
	case reflect.Bool <= k && k <= reflect.Uintptr:
		return true
	case k == reflect.String:
		return t != numberType // an empty json.Number is written as 0
	case k == reflect.Array:
		return isFlat(t.Elem())
	case k == reflect.Struct:
		return isFlatStruct(t)
	}
	return false
}

func isFlatStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		if sf := t.Field(i); sf.Anonymous || !sf.IsExported() {
			return false
		}
	}
	fields := fieldsOf(t)
	if len(fields) != t.NumField() { // some fields are omitted because of a tag or a name conflict
		return false
	}
	for _, f := range fields {
		customZero := f.OmitZero && reflect.PointerTo(f.Type).Implements(zeroerType)
		if f.String || customZero || !isFlat(f.Type) {
			return false
		}
	}
	return true
}
