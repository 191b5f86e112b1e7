package canon

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"unsafe"
)

// An entry is a key of a map, as JSON text, and the address of its value.
type entry struct {
	key   string
	value unsafe.Pointer
}

func (c *compiler) mapFunc(s shape) (appendFunc, *fault) {
	name := keyFunc(s.typ.Key())
	if name == nil {
		return nil, faultf("JSON cannot represent a Go map with keys of type %s: use strings, integers or an encoding.TextMarshaler", s.typ.Key())
	}
	elem, f := c.compile(shape{typ: s.typ.Elem()})
	if f != nil {
		return nil, f.inElem()
	}
	list := listEntries(s.typ, name)
	if s.typ.Key() == stringType {
		switch s.typ.Elem() {
		case anyType:
			list = listStringKeys[any]
		case stringType:
			list = listStringKeys[string]
		}
	}
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		m := *(*unsafe.Pointer)(p)
		if m == nil {
			return append(dst, "null"...), nil
		}
		v := visit{p: m, typ: s.typ}
		if w != nil {
			if f := w.follow(v); f != nil {
				return dst, f
			}
			if f := w.enter(); f != nil {
				return dst, f
			}
		}
		entries, f := list(p)
		if f != nil {
			return dst, f
		}
		if dst, f = appendEntries(dst, entries, elem, w); f != nil {
			return dst, f
		}
		if w != nil {
			w.depth--
			w.back(v)
		}
		return dst, nil
	}, nil
}

func appendEntries(dst []byte, entries []entry, elem appendFunc, w *walk) ([]byte, *fault) {
	slices.SortFunc(entries, func(a, b entry) int { return compareKeys(a.key, b.key) })
	dst = append(dst, '{')
	for i, e := range entries {
		if i > 0 {
			if e.key == entries[i-1].key {
				return dst, faultf("two keys of the map have the text %q", shorten(e.key))
			}
			dst = append(dst, ',')
		}
		var f *fault
		if dst, f = appendString(dst, e.key); f != nil {
			return dst, f.inKey(e.key)
		}
		dst = append(dst, ':')
		if dst, f = elem(dst, e.value, w); f != nil {
			return dst, f.inKey(e.key)
		}
	}
	return append(dst, '}'), nil
}

// listStringKeys returns the entries of a map, for the most common map types, without reflection.
func listStringKeys[V any](p unsafe.Pointer) ([]entry, *fault) {
	m := *(*map[string]V)(p)
	entries := make([]entry, 0, len(m))
	values := make([]V, 0, len(m)) // never grows, because entries point into it
	for k, v := range m {
		values = append(values, v)
		entries = append(entries, entry{k, unsafe.Pointer(&values[len(values)-1])})
	}
	return entries, nil
}

func listEntries(t reflect.Type, name func(reflect.Value) (string, error)) func(unsafe.Pointer) ([]entry, *fault) {
	slice := reflect.SliceOf(t.Elem())
	return func(p unsafe.Pointer) ([]entry, *fault) {
		m := reflect.NewAt(t, p).Elem()
		n := m.Len()
		entries := make([]entry, 0, n)
		values := reflect.MakeSlice(slice, n, n)
		key := reflect.New(t.Key()).Elem()
		for it := m.MapRange(); it.Next(); {
			key.SetIterKey(it)
			text, err := name(key)
			if err != nil {
				return nil, faultf("map key of type %s: %v", t.Key(), err)
			}
			v := values.Index(len(entries))
			v.SetIterValue(it)
			entries = append(entries, entry{text, v.Addr().UnsafePointer()})
		}
		return entries, nil
	}
}

// keyFunc returns a function that converts map keys of type t to text, or nil if JSON does not allow such keys.
func keyFunc(t reflect.Type) func(reflect.Value) (string, error) {
	switch {
	case t.Kind() == reflect.String:
		return func(k reflect.Value) (string, error) { return k.String(), nil }
	case t.Implements(textMarshalerType):
		receiver := receiverOf(t)
		return func(k reflect.Value) (string, error) {
			m, ok := receiver(k.Addr().UnsafePointer()).(encoding.TextMarshaler)
			if !ok {
				return "", nil
			}
			text, err := guard(m.MarshalText)
			return string(text), err
		}
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(k reflect.Value) (string, error) { return strconv.FormatInt(k.Int(), 10), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(k reflect.Value) (string, error) { return strconv.FormatUint(k.Uint(), 10), nil }
	}
	return nil
}
