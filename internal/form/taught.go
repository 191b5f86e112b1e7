package form

import (
	"fmt"
	"reflect"
)

var taught = map[reflect.Type]any{}

// Teach registers a function that reads a T from the fields of a map. If parts are named, the function reads only the fields of
// these parts. Packages call Teach for their types in init, so that other packages of this module can read the types without an
// exported function for each.
func Teach[T any](read func(m *Map, to *T, parts ...string)) {
	t := reflect.TypeFor[T]()
	if taught[t] != nil {
		panic(fmt.Sprintf("form: %s is taught twice", t))
	}
	taught[t] = read
}

// Into reads a T from the fields of m. It panics unless the package of T has called Teach.
func Into[T any](m *Map, to *T, parts ...string) {
	read, ok := taught[reflect.TypeFor[T]()].(func(*Map, *T, ...string))
	if !ok {
		panic(fmt.Sprintf("form: no package has taught how %s is read", reflect.TypeFor[T]()))
	}
	read(m, to, parts...)
}
