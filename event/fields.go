package event

import (
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"
)

// A field describes a field of a type that implements Data. Fields of nested structs count as fields of the type itself.
type field struct {
	name    string
	path    []int // the field indexes, outermost first
	omit    bool  // whether the field is omitted while it is zero
	content bool
}

var fieldsByType sync.Map // reflect.Type → []field

// fieldsOf returns the fields of a type that implements Data, in order.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldsByType.Load(t); ok {
		return known.([]field)
	}
	fields := appendFields(nil, t, nil)
	fieldsByType.Store(t, fields)
	return fields
}

func appendFields(fields []field, t reflect.Type, path []int) []field {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(path[:len(path):len(path)], i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			fields = appendFields(fields, inner, at)
			continue
		}
		fields = append(fields, field{name, at, options == "omitempty", f.Tag.Get("event") == "content"})
	}
	return fields
}

// of returns the value of the field in v, and whether it is present.
func (f field) of(data reflect.Value) (any, bool) {
	v := data
	for _, i := range f.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if f.omit && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return nil, false
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.Interface(), true
}

// Attrs returns the fields of the event without its contents: the name of the ashlar, the path, and the fields of the data. A
// duration is a [time.Duration] of whole microseconds. A Custom event has the attributes that the body set, as UnmarshalJSON
// returns them.
func (e Event) Attrs() []slog.Attr {
	if c, ok := e.Data.(Custom); ok {
		attrs, _ := members(appendGroup(nil, c.Attrs))
		return attrs
	}
	path := e.Path
	if n, ok := e.Data.(Notice); ok && n.Path != "" {
		path = n.Path
	}
	attrs := append(make([]slog.Attr, 0, 12), slog.String("ashlar-name", e.Name), slog.String("path", path))
	return e.appendAttrs(attrs, false)
}

// appendAttrs appends the fields of the data: either the contents or all other fields.
func (e Event) appendAttrs(attrs []slog.Attr, contents bool) []slog.Attr {
	data := reflect.ValueOf(e.Data)
	for _, f := range fieldsOf(data.Type()) {
		if f.content != contents || f.name == "path" {
			continue
		}
		if v, ok := f.of(data); ok {
			if d, ok := v.(time.Duration); ok {
				v = d.Round(time.Microsecond)
			}
			attrs = append(attrs, slog.Any(f.name, v))
		}
	}
	return attrs
}
