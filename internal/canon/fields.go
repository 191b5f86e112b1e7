package canon

import (
	"reflect"
	"slices"

	"github.com/stonelayer/stone/internal/fields"
)

// A field is one member of the JSON object of a struct, and its place in memory.
type field struct {
	fields.Field
	hops   []uintptr // offsets of embedded pointers to follow before offset counts
	offset uintptr
}

// fieldsOf lists the members of a struct in canonical order.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for _, of := range fields.Of(t) {
		f, at := field{Field: of}, t
		for _, i := range of.Path[:len(of.Path)-1] {
			sf := at.Field(i)
			f.offset += sf.Offset
			if at = sf.Type; at.Kind() == reflect.Pointer {
				f.hops, f.offset, at = append(f.hops, f.offset), 0, at.Elem()
			}
		}
		f.offset += of.StructField.Offset
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b field) int { return compareKeys(a.JSON, b.JSON) })
	return all
}
