package canon

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/stonelayer/stone/internal/fields"
	"github.com/stonelayer/stone/internal/jsonv2"
)

// Copy sets *to, which must be zero, to the value that decoding the canonical JSON of *from would yield. The copy shares only
// strings with the original. Copy returns false if the JSON itself is needed, for example for a type with JSON methods, a raw
// message that is not canonical, or a value without a JSON form; *to is then undefined. *from must not change during the call.
//
// Copying a tool's result takes 0.1 µs; encoding and decoding it takes 1 µs.
func Copy[T any](to, from *T) bool {
	return copierOf(reflect.TypeFor[T]())(unsafe.Pointer(to), unsafe.Pointer(from), 0)
}

// copyFunc copies a value that is depth levels deep to zeroed memory. It returns false if the copy might differ from the decoded
// JSON.
type copyFunc func(to, from unsafe.Pointer, depth int) bool

var copiers sync.Map // reflect.Type → copyFunc

func copierOf(t reflect.Type) copyFunc {
	if fn, ok := copiers.Load(t); ok {
		return fn.(copyFunc)
	}
	own := copyFunc(never)
	if _, err := Addressable(t); err == nil { // a type without a JSON form cannot be copied, even if the value is nil
		own = copyCompiler{}.compile(t)
	}
	fn, _ := copiers.LoadOrStore(t, own)
	return fn.(copyFunc)
}

// A copyCompiler turns types into functions that copy values. Its entry for a type is nil while the function is being built.
type copyCompiler map[reflect.Type]*copyFunc

func (c copyCompiler) compile(t reflect.Type) copyFunc {
	if slot, ok := c[t]; ok {
		if *slot != nil {
			return *slot
		}
		return func(to, from unsafe.Pointer, depth int) bool { return (*slot)(to, from, depth) }
	}
	slot := new(copyFunc)
	c[t] = slot
	*slot = c.build(t)
	return *slot
}

// ownJSON lists the interfaces of types that read or write their JSON themselves.
var ownJSON = []reflect.Type{
	marshalerType,
	textMarshalerType,
	reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[jsonv2.UnmarshalerFrom](),
}

func hasOwnJSON(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return slices.ContainsFunc(ownJSON, func(m reflect.Type) bool { return t.Implements(m) || pointer.Implements(m) })
}

func never(_, _ unsafe.Pointer, _ int) bool { return false }

// onlyNil copies only nil pointers and interfaces, which are written as null regardless of their types' methods. For any other
// value, it returns false.
func onlyNil(_, from unsafe.Pointer, _ int) bool { return *(*unsafe.Pointer)(from) == nil }

func (c copyCompiler) build(t reflect.Type) copyFunc {
	switch {
	case t == rawMessageType:
		return copyRaw
	case t.Kind() == reflect.Interface, t.Kind() == reflect.Pointer && hasOwnJSON(t.Elem()):
		return onlyNil
	case hasOwnJSON(t), t == numberType:
		return never
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.structCopy(t)
	case reflect.Slice:
		return c.sliceCopy(t)
	case reflect.Array:
		elem, size, n := c.compile(t.Elem()), t.Elem().Size(), t.Len()
		return func(to, from unsafe.Pointer, depth int) bool {
			return depth < easyDepth && copyElems(to, from, n, size, elem, depth+1)
		}
	case reflect.Map:
		return c.mapCopy(t)
	case reflect.Pointer:
		return c.pointerCopy(t.Elem())
	}
	return scalarCopy(t)
}

func scalarCopy(t reflect.Type) copyFunc {
	switch t.Kind() {
	case reflect.String:
		return copyString
	case reflect.Float32:
		return copyFloat[float32]
	case reflect.Float64:
		return copyFloat[float64]
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return copyWord[uint8]
	case reflect.Int16, reflect.Uint16:
		return copyWord[uint16]
	case reflect.Int32, reflect.Uint32:
		return copyWord[uint32]
	case reflect.Int64, reflect.Uint64:
		return copyWord[uint64]
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return copyWord[uint]
	}
	return never
}

func copyWord[T uint8 | uint16 | uint32 | uint64 | uint](to, from unsafe.Pointer, _ int) bool {
	*(*T)(to) = *(*T)(from)
	return true
}

func copyFloat[T float32 | float64](to, from unsafe.Pointer, _ int) bool {
	v := *(*T)(from)
	*(*T)(to) = v + 0 // negative zero is written as 0
	return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
}

func copyString(to, from unsafe.Pointer, _ int) bool {
	s := *(*string)(from)
	*(*string)(to) = s
	return utf8.ValidString(s)
}

func copyRaw(to, from unsafe.Pointer, depth int) bool {
	raw := *(*json.RawMessage)(from)
	if raw == nil {
		*(*json.RawMessage)(to) = json.RawMessage("null")
		return true
	}
	*(*json.RawMessage)(to) = slices.Clone(raw)
	return isCanonical(raw, depth)
}

func copyBytes(to, from unsafe.Pointer, _ int) bool {
	*(*[]byte)(to) = slices.Clone(*(*[]byte)(from))
	return true
}

// readsNull reports whether a value of type t can be written as null. If so, a pointer to such a value becomes nil when it is
// decoded.
func readsNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return true
	}
	return false
}

func (c copyCompiler) pointerCopy(t reflect.Type) copyFunc {
	if readsNull(t) {
		return onlyNil
	}
	elem := c.compile(t)
	return func(to, from unsafe.Pointer, depth int) bool {
		p := *(*unsafe.Pointer)(from)
		if p == nil {
			return true
		}
		if depth >= easyDepth {
			return false
		}
		own := reflect.New(t).UnsafePointer()
		*(*unsafe.Pointer)(to) = own
		return elem(own, p, depth+1)
	}
}

func (c copyCompiler) sliceCopy(t reflect.Type) copyFunc {
	of := t.Elem()
	if of == reflect.TypeFor[byte]() {
		return copyBytes
	}
	if of.Kind() == reflect.Uint8 { // written as base64 or as a list, depending on the methods of the element type
		return never
	}
	elem, size := c.compile(of), of.Size()
	return func(to, from unsafe.Pointer, depth int) bool {
		h := (*sliceHeader)(from)
		if h.data == nil {
			return true
		}
		if depth >= easyDepth {
			return false
		}
		own := reflect.MakeSlice(t, h.len, h.len)
		reflect.NewAt(t, to).Elem().Set(own)
		return copyElems(own.UnsafePointer(), h.data, h.len, size, elem, depth+1)
	}
}

func copyElems(to, from unsafe.Pointer, n int, size uintptr, elem copyFunc, depth int) bool {
	for i := range n {
		at := uintptr(i) * size
		if !elem(unsafe.Add(to, at), unsafe.Add(from, at), depth) {
			return false
		}
	}
	return true
}

func (c copyCompiler) mapCopy(t reflect.Type) copyFunc {
	if t.Key() != stringType {
		return func(_, from unsafe.Pointer, _ int) bool { return *(*unsafe.Pointer)(from) == nil }
	}
	elem := c.compile(t.Elem())
	return func(to, from unsafe.Pointer, depth int) bool {
		m := reflect.NewAt(t, from).Elem()
		if m.IsNil() {
			return true
		}
		if depth >= easyDepth {
			return false
		}
		own := reflect.MakeMapWithSize(t, m.Len())
		reflect.NewAt(t, to).Elem().Set(own)
		given := reflect.New(t.Elem()).Elem()
		for it := m.MapRange(); it.Next(); {
			value := reflect.New(t.Elem())
			given.SetIterValue(it)
			if !utf8.ValidString(it.Key().String()) || !elem(value.UnsafePointer(), given.Addr().UnsafePointer(), depth+1) {
				return false
			}
			own.SetMapIndex(it.Key(), value.Elem())
		}
		return true
	}
}

// A copiedField is a field of a struct that has a JSON form. All other fields stay zero.
type copiedField struct {
	offset uintptr
	copy   copyFunc
	empty  func(unsafe.Pointer) bool
	zero   func(unsafe.Pointer) (bool, error)
}

func (c copyCompiler) structCopy(t reflect.Type) copyFunc {
	var all []copiedField
	for _, f := range fieldsOf(t) {
		if len(f.hops) > 0 || f.String || !plainTag(f.Field) {
			return never
		}
		own := copiedField{offset: f.offset, copy: c.compile(f.Type)}
		if f.OmitEmpty {
			own.empty = emptyFunc(f.Type)
		}
		if f.OmitZero {
			own.zero = zeroFunc(f.Type)
		}
		all = append(all, own)
	}
	return func(to, from unsafe.Pointer, depth int) bool {
		if depth >= easyDepth {
			return false
		}
		for i := range all {
			f := &all[i]
			at := unsafe.Add(from, f.offset)
			if f.empty != nil && f.empty(at) {
				continue
			}
			if f.zero != nil {
				if zero, err := f.zero(at); err != nil {
					return false
				} else if zero {
					continue
				}
			}
			if !f.copy(unsafe.Add(to, f.offset), at, depth+1) {
				return false
			}
		}
		return true
	}
}

// plainTag reports whether the name in a field's tag, if any, consists of plain characters, and the only options are those that
// decide when the field is omitted. Encoders and decoders disagree on other names and options.
func plainTag(f fields.Field) bool {
	name, options, _ := strings.Cut(f.StructField.Tag.Get("json"), ",")
	for _, c := range name {
		if c != '_' && c != '-' && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return false
		}
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		default:
			return false
		}
	}
	return true
}
