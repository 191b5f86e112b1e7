package canon

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"unsafe"
)

// appendRaw appends a json.RawMessage.
func appendRaw(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
	raw := *(*json.RawMessage)(p)
	if raw == nil {
		return append(dst, "null"...), nil
	}
	return appendText(dst, raw, w.depth)
}

func marshalerFunc(t reflect.Type) appendFunc {
	receiver := receiverOf(t)
	return func(dst []byte, p unsafe.Pointer, w *walk) ([]byte, *fault) {
		m, ok := receiver(p).(json.Marshaler)
		if !ok {
			return append(dst, "null"...), nil
		}
		text, err := guard(m.MarshalJSON)
		if err != nil {
			return dst, faultf("MarshalJSON of %s: %v", t, err)
		}
		return appendText(dst, text, w.depth)
	}
}

func textMarshalerFunc(t reflect.Type) appendFunc {
	receiver := receiverOf(t)
	return func(dst []byte, p unsafe.Pointer, _ *walk) ([]byte, *fault) {
		m, ok := receiver(p).(encoding.TextMarshaler)
		if !ok {
			return append(dst, "null"...), nil
		}
		text, err := guard(m.MarshalText)
		if err != nil {
			return dst, faultf("MarshalText of %s: %v", t, err)
		}
		return appendString(dst, string(text))
	}
}

// receiverOf returns a function that converts the address of a value of type t to the receiver on which its methods are called.
// For a nil pointer or interface the receiver is nil. For kinds other than pointers and interfaces it is the address itself: this
// saves a copy, and the pointer's methods include the value's.
func receiverOf(t reflect.Type) func(p unsafe.Pointer) any {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		return func(p unsafe.Pointer) any { return reflect.NewAt(t, p).Interface() }
	}
	return func(p unsafe.Pointer) any {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return nil
		}
		return v.Interface()
	}
}

// guard calls a function of another package. If the function panics, guard returns the panic as an error.
func guard[T any](call func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return call()
}
