package form

import (
	"fmt"
	"reflect"
)

var taught = map[reflect.Type]any{}

// Teach says how a T is read: from the fields of a map, or, where it has parts, from
// those of its parts that are named. Packages teach their types in init, so that
// others of this module can read them without an exported function for each.
func Teach[T any](read func(m *Map, to *T, parts ...string)) {
	t := reflect.TypeFor[T]()
	if taught[t] != nil {
		panic(fmt.Sprintf("form: %s is taught twice", t))
	}
	taught[t] = read
}

// Into reads a T, whose package has taught how.
func Into[T any](m *Map, to *T, parts ...string) {
	read, ok := taught[reflect.TypeFor[T]()].(func(*Map, *T, ...string))
	if !ok {
		panic(fmt.Sprintf("form: nobody has taught how %s is read", reflect.TypeFor[T]()))
	}
	read(m, to, parts...)
}
