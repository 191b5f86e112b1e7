package canon

import (
	"encoding/json"
	"reflect"
	"sync"
	"unsafe"
)

// An Encoder writes values of one Go type as canonical JSON. It is safe for concurrent use.
type Encoder struct {
	append appendFunc
	deep   bool // whether values may be nested without limit, so that encoding needs a walk
	flat   bool
}

// appendFunc appends the value at p to dst. After a fault the appended bytes are invalid. The walk is nil if the type is not deep.
type appendFunc func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault)

var encoders sync.Map // shape → *Encoder

// For returns the Encoder for the type t. It is compiled on the first call for t and cached. If a part of t has no JSON form, the
// error is an *Error that names the part.
func For(t reflect.Type) (*Encoder, error) {
	e, f := encoderOf(shape{typ: t})
	if f != nil {
		return nil, f.err()
	}
	return e, nil
}

// Addressable returns the encoder of a type for values that are variables: as with json.Marshal(&v), methods with a pointer
// receiver are called on the value itself, so the value can decode its own text.
func Addressable(t reflect.Type) (*Encoder, error) {
	e, f := encoderOf(shape{typ: t, addressable: t != nil && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface})
	if f != nil {
		return nil, f.err()
	}
	return e, nil
}

func encoderOf(s shape) (*Encoder, *fault) {
	t := s.typ
	if e, ok := encoders.Load(s); ok {
		return e.(*Encoder), nil
	}
	if t == nil {
		return nil, faultf("no type given")
	}
	c := compiler{funcs: make(map[shape]*appendFunc)}
	fn, f := c.compile(s)
	if f != nil {
		return nil, f
	}
	e, _ := encoders.LoadOrStore(s, &Encoder{append: fn, deep: c.deep, flat: isFlat(t)})
	return e.(*Encoder), nil
}

// Append appends the canonical JSON of the value at p to dst. The value must be of the encoder's type and must not change during
// the call. As with json.Marshal(v), methods with a pointer receiver are called only on values reached through a pointer or
// slice, not on the value itself, unless the encoder is Addressable. The error is an *Error; dst is then returned unchanged.
func (e *Encoder) Append(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if p == nil {
		return dst, &Error{Reason: "no value: the pointer to it is nil"}
	}
	var w *walk
	if e.deep {
		w = walks.Get().(*walk)
		defer w.release()
	}
	out, f := e.append(dst, p, w)
	if f != nil {
		return dst, f.err()
	}
	return out, nil
}

// Flat reports whether a plain copy of any value that has the encoder's type equals the result of decoding its JSON. This is the
// case for booleans, integers and strings, and for arrays and structs of these if all fields are exported and written, and no type
// has JSON methods.
func (e *Encoder) Flat() bool { return e.flat }

// Append appends the canonical JSON of v, according to its dynamic type, to dst. A nil v is written as null. The error is an
// *Error; dst is then returned unchanged.
func Append(dst []byte, v any) ([]byte, error) {
	w := walks.Get().(*walk)
	defer w.release()
	out, f := appendAny(dst, v, w)
	if f != nil {
		return dst, f.err()
	}
	return out, nil
}

// appendAny appends the value of an interface. It handles the types of decoded JSON first, because these need neither a look-up
// nor a copy.
func appendAny(dst []byte, v any, w *walk) ([]byte, *fault) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, v)
	case bool:
		return appendBool(dst, v), nil
	case float64:
		return appendFloat64(dst, v)
	case json.Number:
		return appendNumber(dst, v)
	}
	rv := reflect.ValueOf(v)
	e, f := encoderOf(shape{typ: rv.Type()})
	if f != nil {
		return dst, f
	}
	switch rv.Kind() {
	case reflect.Pointer, reflect.Map:
		p := rv.UnsafePointer()
		return e.append(dst, unsafe.Pointer(&p), w)
	}
	box := reflect.New(rv.Type())
	box.Elem().Set(rv)
	return e.append(dst, box.UnsafePointer(), w)
}
