package canon

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/stonelayer/stone/internal/fields"
)

// A member describes how to write one field.
type member struct {
	key    string // `,"name":`
	append appendFunc
	offset uintptr
	hops   []uintptr
	empty  func(unsafe.Pointer) bool          // test for omitempty, or nil
	zero   func(unsafe.Pointer) (bool, error) // test for omitzero, or nil
	name   string
}

func (c *compiler) structFunc(s shape) (appendFunc, *fault) {
	var members []member
	for _, f := range fieldsOf(s.typ) {
		fn, fault := c.compile(shape{
			typ:         f.Type,
			addressable: s.addressable || len(f.hops) > 0,
			quoted:      f.String,
		})
		if fault != nil {
			return nil, fault.inKey(f.JSON)
		}
		m := member{key: `,"` + f.JSON + `":`, append: fn, offset: f.offset, hops: f.hops, name: f.JSON}
		if f.OmitEmpty {
			m.empty = emptyFunc(f.Type)
		}
		if f.OmitZero {
			m.zero = zeroFunc(f.Type)
		}
		members = append(members, m)
	}
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		return appendMembers(dst, p, members, w)
	}, nil
}

func appendMembers(dst []byte, p unsafe.Pointer, members []member, w *walk) ([]byte, *fault) {
	if w != nil {
		if f := w.enter(); f != nil {
			return dst, f
		}
	}
	start := len(dst)
	for i := range members {
		m := &members[i]
		base := p
		if m.hops != nil {
			if base = deref(p, m.hops); base == nil {
				continue
			}
		}
		at := unsafe.Add(base, m.offset)
		if m.empty != nil && m.empty(at) {
			continue
		}
		if m.zero != nil {
			zero, err := m.zero(at)
			if err != nil {
				return dst, faultf("IsZero: %v", err).inKey(m.name)
			}
			if zero {
				continue
			}
		}
		dst = append(dst, m.key...)
		var f *fault
		if dst, f = m.append(dst, at, w); f != nil {
			return dst, f.inKey(m.name)
		}
	}
	if w != nil {
		w.depth--
	}
	if len(dst) == start {
		return append(dst, "{}"...), nil
	}
	dst[start] = '{' // overwrites the first comma
	return append(dst, '}'), nil
}

// deref follows embedded pointers. It returns nil if one of the pointers is nil.
func deref(p unsafe.Pointer, hops []uintptr) unsafe.Pointer {
	for _, offset := range hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, offset)); p == nil {
			return nil
		}
	}
	return p
}

// emptyFunc returns the function that tests whether a value of a type is empty, for the tag option "omitempty". It returns nil if
// values of the type are never empty.
func emptyFunc(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return (*sliceHeader)(p).len == 0 }
	case reflect.Map:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().Len() == 0 }
	case reflect.Array:
		if t.Len() == 0 {
			return func(unsafe.Pointer) bool { return true }
		}
		return nil
	case reflect.Struct:
		return nil
	}
	return plainZeroFunc(t)
}

type zeroer interface{ IsZero() bool }

var zeroerType = reflect.TypeFor[zeroer]()

// zeroFunc returns the function that tests whether a value of a type is zero, for the tag option "omitzero". It calls the type's
// IsZero method or, without one, compares with the zero value.
func zeroFunc(t reflect.Type) func(unsafe.Pointer) (bool, error) {
	if !t.Implements(zeroerType) && !reflect.PointerTo(t).Implements(zeroerType) {
		zero := plainZeroFunc(t)
		return func(p unsafe.Pointer) (bool, error) { return zero(p), nil }
	}
	receiver := receiverOf(t)
	return func(p unsafe.Pointer) (bool, error) {
		z, ok := receiver(p).(zeroer)
		if v := reflect.ValueOf(z); !ok || v.Kind() == reflect.Pointer && v.IsNil() {
			return true, nil
		}
		return guard(func() (bool, error) { return z.IsZero(), nil })
	}
}

func plainZeroFunc(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Array:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
	case reflect.String:
		return func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
	case reflect.Float32: // a negative zero counts as zero
		return func(p unsafe.Pointer) bool { return *(*float32)(p) == 0 }
	case reflect.Float64:
		return func(p unsafe.Pointer) bool { return *(*float64)(p) == 0 }
	case reflect.Slice, reflect.Interface: // nil if the first word is zero
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	}
	switch t.Size() {
	case 1:
		return isZeroWord[uint8]
	case 2:
		return isZeroWord[uint16]
	case 4:
		return isZeroWord[uint32]
	}
	return isZeroWord[uint64]
}

func isZeroWord[T uint8 | uint16 | uint32 | uint64](p unsafe.Pointer) bool { return *(*T)(p) == 0 }

// A field is a member of a struct's JSON object, together with its location in memory.
type field struct {
	fields.Field
	hops   []uintptr // offsets of the embedded pointers to follow before offset is applied
	offset uintptr
}

// fieldsOf returns the members of a struct's JSON object in canonical order.
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
