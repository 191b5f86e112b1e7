package canon

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/stonelayer/stone/internal/jsonv2"
)

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	numberType        = reflect.TypeFor[json.Number]()
	stringType        = reflect.TypeFor[string]()
	anyType           = reflect.TypeFor[any]()
)

// A shape contains everything that determines how a value is written: its type, whether encoding/json could take its address (only
// then are methods with a pointer receiver used), and whether the tag option "string" applies.
type shape struct {
	typ         reflect.Type
	addressable bool
	quoted      bool
}

// A compiler turns a type into a function that appends values of the type, which calls the functions for the parts of the type.
type compiler struct {
	funcs map[shape]*appendFunc // points to nil while the function is being built
	deep  bool
}

// compile returns the function that appends values of a shape. It builds each function only once.
func (c *compiler) compile(s shape) (appendFunc, *fault) {
	if slot, ok := c.funcs[s]; ok {
		if *slot != nil {
			return *slot, nil
		}
		c.deep = true // the type contains itself
		return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) { return (*slot)(dst, p, w) }, nil
	}
	slot := new(appendFunc)
	c.funcs[s] = slot
	fn, f := c.build(s)
	*slot = fn
	return fn, f
}

// build follows the order of encoding/json, in which the methods of a type take precedence over its kind.
func (c *compiler) build(s shape) (appendFunc, *fault) {
	methods := s.typ
	if s.addressable && s.typ.Kind() != reflect.Pointer && s.typ.Kind() != reflect.Interface {
		methods = reflect.PointerTo(s.typ)
	}
	switch {
	case s.typ == rawMessageType:
		c.deep = true
		return appendRaw, nil
	case methods.Implements(marshalerType):
		c.deep = true
		return marshalerFunc(s.typ), nil
	case methods.Implements(textMarshalerType):
		return textMarshalerFunc(s.typ), nil
	case s.quoted && s.typ.Kind() != reflect.Pointer:
		return quotedFunc(s.typ)
	}
	switch s.typ.Kind() {
	case reflect.String:
		if s.typ == numberType {
			return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
				return appendNumber(dst, *(*json.Number)(p))
			}, nil
		}
		return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendString(dst, *(*string)(p))
		}, nil
	case reflect.Struct:
		return c.structFunc(s)
	case reflect.Slice:
		return c.sliceFunc(s)
	case reflect.Array:
		return c.arrayFunc(s)
	case reflect.Map:
		return c.mapFunc(s)
	case reflect.Pointer:
		return c.pointerFunc(s)
	case reflect.Interface:
		c.deep = true
		return interfaceFunc(s.typ), nil
	}
	return scalarFunc(s.typ)
}

func scalarFunc(t reflect.Type) (appendFunc, *fault) {
	switch t.Kind() {
	case reflect.Bool:
		return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendBool(dst, *(*bool)(p)), nil
		}, nil
	case reflect.Int:
		return intFunc[int], nil
	case reflect.Int8:
		return intFunc[int8], nil
	case reflect.Int16:
		return intFunc[int16], nil
	case reflect.Int32:
		return intFunc[int32], nil
	case reflect.Int64:
		return intFunc[int64], nil
	case reflect.Uint:
		return uintFunc[uint], nil
	case reflect.Uint8:
		return uintFunc[uint8], nil
	case reflect.Uint16:
		return uintFunc[uint16], nil
	case reflect.Uint32:
		return uintFunc[uint32], nil
	case reflect.Uint64:
		return uintFunc[uint64], nil
	case reflect.Uintptr:
		return uintFunc[uintptr], nil
	case reflect.Float32:
		return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendFloat32(dst, *(*float32)(p))
		}, nil
	case reflect.Float64:
		return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendFloat64(dst, *(*float64)(p))
		}, nil
	}
	return nil, faultf("JSON cannot represent a Go %s: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method", t)
}

func intFunc[T int | int8 | int16 | int32 | int64](dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
	return strconv.AppendInt(dst, int64(*(*T)(p)), 10), nil
}

func uintFunc[T uint | uint8 | uint16 | uint32 | uint64 | uintptr](dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
	return strconv.AppendUint(dst, uint64(*(*T)(p)), 10), nil
}

// quotedFunc writes a scalar inside a JSON string, for the tag option "string". The string contains text, so numbers keep the
// format that encoding/json uses there.
func quotedFunc(t reflect.Type) (appendFunc, *fault) {
	var bare appendFunc
	switch {
	case t == numberType:
		bare = func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			s, f := numberLiteral(*(*json.Number)(p))
			if f == nil && !jsonv2.Value(s).IsValid() {
				f = faultf("%q is not a JSON number", shorten(s))
			}
			return append(dst, s...), f
		}
	case t.Kind() == reflect.String:
		return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendQuotedString(dst, *(*string)(p))
		}, nil
	case t.Kind() == reflect.Float64:
		bare = func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendSignedFloat(dst, *(*float64)(p), 64)
		}
	case t.Kind() == reflect.Float32:
		bare = func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
			return appendSignedFloat(dst, float64(*(*float32)(p)), 32)
		}
	default:
		var f *fault
		if bare, f = scalarFunc(t); f != nil {
			return nil, f
		}
	}
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		dst, f := bare(append(dst, '"'), p, w)
		return append(dst, '"'), f
	}, nil
}

func (c *compiler) pointerFunc(s shape) (appendFunc, *fault) {
	elem, f := c.compile(shape{typ: s.typ.Elem(), addressable: true, quoted: s.quoted})
	if f != nil {
		return nil, f
	}
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		p = *(*unsafe.Pointer)(p)
		if p == nil {
			return append(dst, "null"...), nil
		}
		if w == nil {
			return elem(dst, p, nil)
		}
		v := visit{p: p, typ: s.typ}
		if f := w.follow(v); f != nil {
			return dst, f
		}
		dst, f := elem(dst, p, w)
		w.back(v)
		return dst, f
	}, nil
}

func interfaceFunc(t reflect.Type) appendFunc {
	if t.NumMethod() == 0 {
		return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
			return appendAny(dst, *(*any)(p), w)
		}
	}
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		return appendAny(dst, reflect.NewAt(t, p).Elem().Interface(), w)
	}
}

// A sliceHeader is the memory layout of a slice.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func (c *compiler) sliceFunc(s shape) (appendFunc, *fault) {
	t := s.typ.Elem()
	if t.Kind() == reflect.Uint8 {
		if p := reflect.PointerTo(t); !p.Implements(marshalerType) && !p.Implements(textMarshalerType) {
			return appendBytes, nil
		}
	}
	elem, f := c.compile(shape{typ: t, addressable: true})
	if f != nil {
		return nil, f.inElem()
	}
	size := t.Size()
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		h := (*sliceHeader)(p)
		if h.data == nil {
			return append(dst, "null"...), nil
		}
		if w == nil || h.len == 0 {
			return appendElems(dst, h.data, h.len, size, elem, w)
		}
		v := visit{p: h.data, len: h.len, typ: s.typ}
		if f := w.follow(v); f != nil {
			return dst, f
		}
		dst, f := appendElems(dst, h.data, h.len, size, elem, w)
		w.back(v)
		return dst, f
	}, nil
}

func (c *compiler) arrayFunc(s shape) (appendFunc, *fault) {
	t := s.typ.Elem()
	elem, f := c.compile(shape{typ: t, addressable: s.addressable})
	if f != nil {
		return nil, f.inElem()
	}
	size, n := t.Size(), s.typ.Len()
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		return appendElems(dst, p, n, size, elem, w)
	}, nil
}

func appendElems(dst []byte, p unsafe.Pointer, n int, size uintptr, elem appendFunc, w *walk) ([]byte, *fault) {
	if w != nil {
		if f := w.enter(); f != nil {
			return dst, f
		}
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var f *fault
		if dst, f = elem(dst, unsafe.Add(p, uintptr(i)*size), w); f != nil {
			return dst, f.inIndex(i)
		}
	}
	if w != nil {
		w.depth--
	}
	return append(dst, ']'), nil
}

func appendBytes(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
	b := *(*[]byte)(p)
	if b == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"'), nil
}
