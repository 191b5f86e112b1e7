package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A Lists checks that values of one Go type contain only values from the closed lists in the type's enum tags and Enum methods. A
// nil *Lists accepts every value. It is safe for concurrent use.
type Lists struct{ check checker }

// checker checks v. It returns the path of the first invalid value in it and a description of the problem, or two empty strings if
// v is valid.
type checker func(v reflect.Value) (path, wrong string)

var listsOf sync.Map // reflect.Type → *Lists

// ListsOf returns the closed lists of t, or nil if t has none. It compiles the lists once for each type. ForType must accept t.
func ListsOf(t reflect.Type) *Lists {
	if kept, ok := listsOf.Load(t); ok {
		return kept.(*Lists)
	}
	var own *Lists
	if lists(t, map[reflect.Type]bool{}) {
		c := listCompiler{map[reflect.Type]*checker{}}
		own = &Lists{c.compile(t)}
	}
	kept, _ := listsOf.LoadOrStore(t, own)
	return kept.(*Lists)
}

// Check returns nil if all values in v are in their lists. Otherwise it returns an error that names the first value outside its
// list. The type of v must be the type passed to ListsOf.
func (l *Lists) Check(v reflect.Value) error {
	if l == nil {
		return nil
	}
	path, wrong := l.check(v)
	if wrong == "" {
		return nil
	}
	return &ValidationError{[]Problem{{Path: path, Message: wrong}}}
}

type listCompiler struct {
	open map[reflect.Type]*checker // checkers by type, including unfinished ones
}

// made returns the parts of t to check: the fields of a struct, or the element type of a pointer, slice, array or map. Both results
// are nil for any other type, and for a type that marshals itself.
func made(t reflect.Type) (fields []field, elem reflect.Type) {
	if byMethod(t, true) != nil {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return nil, t.Elem()
	case reflect.Struct:
		return fieldsOf(t), nil
	}
	return nil, nil
}

// lists reports whether t, or a type in it, has a list. The map seen contains the types already visited.
func lists(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	fields, elem := made(t)
	if closed(t) || elem != nil && lists(elem, seen) {
		return true
	}
	return slices.ContainsFunc(fields, func(f field) bool { return f.list() != nil || lists(f.Type, seen) })
}

// closed reports whether t itself has a list of values.
func closed(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && hasEnum(t)
}

// list returns the values in the field's enum tag, or nil if the field has none.
func (f field) list() []string {
	text, ok := f.Tag.Lookup("enum")
	if !ok || f.quoted() {
		return nil
	}
	return tagValues(text)
}

// tagValues returns the values in an enum tag.
func tagValues(text string) []string {
	values := strings.Split(text, ",")
	for i, v := range values {
		values[i] = strings.TrimSpace(v)
	}
	return values
}

func (c *listCompiler) compile(t reflect.Type) checker {
	if known := c.open[t]; known != nil { // t contains itself
		return func(v reflect.Value) (string, string) { return (*known)(v) }
	}
	own := new(checker)
	c.open[t] = own
	fields, elem := made(t)
	switch {
	case closed(t):
		*own = byEnum(t)
	case fields != nil:
		*own = c.fields(fields)
	case t.Kind() == reflect.Pointer:
		in := c.compile(elem)
		*own = func(v reflect.Value) (string, string) {
			if v.IsNil() {
				return "", ""
			}
			return in(v.Elem())
		}
	case t.Kind() == reflect.Map:
		*own = entries(c.compile(elem))
	default:
		*own = items(c.compile(elem))
	}
	return *own
}

func items(in checker) checker {
	return func(v reflect.Value) (string, string) {
		for n := range v.Len() {
			if path, wrong := in(v.Index(n)); wrong != "" {
				return joinPath(fmt.Sprintf("[%d]", n), path), wrong
			}
		}
		return "", ""
	}
}

func entries(in checker) checker {
	return func(v reflect.Value) (string, string) {
		for each := v.MapRange(); each.Next(); {
			if path, wrong := in(each.Value()); wrong != "" {
				return joinPath(propertyPath(fmt.Sprint(each.Key())), path), wrong
			}
		}
		return "", ""
	}
}

// fields returns a checker for the fields of a struct that have lists.
func (c *listCompiler) fields(fields []field) checker {
	type member struct {
		field
		check checker
	}
	var members []member
	for _, f := range fields {
		switch list := f.list(); {
		case list != nil:
			members = append(members, member{f, among(list)})
		case lists(f.Type, map[reflect.Type]bool{}):
			members = append(members, member{f, c.compile(f.Type)})
		}
	}
	return func(v reflect.Value) (string, string) {
		for _, m := range members {
			at, err := v.FieldByIndexErr(m.Path)
			if err != nil || m.omitted() && at.IsZero() {
				continue // encoding/json omits the field
			}
			if path, wrong := m.check(at); wrong != "" {
				return joinPath(propertyPath(m.JSON), path), wrong
			}
		}
		return "", ""
	}
}

// among returns a checker that accepts a string, or a pointer to a string, only if it is one of the values.
func among(list []string) checker {
	return func(v reflect.Value) (string, string) {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return "", ""
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.String || slices.Contains(list, v.String()) {
			return "", ""
		}
		words := make([]string, len(list))
		for i, value := range list {
			words[i] = literal(value)
		}
		return "", fmt.Sprintf("want %s, got %s", oneOf(words), literal(v.String()))
	}
}

// byEnum returns a checker that accepts only the values in the list that the method Enum of t returns. It compares values as JSON.
func byEnum(t reflect.Type) checker {
	values, err := enumOf(t, "")
	if err != nil { // ForType reports the error
		return func(reflect.Value) (string, string) { return "", "" }
	}
	bare := t.Kind() == reflect.String && byMethod(t, true) == nil
	return func(v reflect.Value) (string, string) {
		var value any
		if bare {
			value = v.String()
		} else if text, err := json.Marshal(v.Interface()); err != nil {
			return "", "" // marshalling the node reports the error
		} else if value, err = decode(text); err != nil {
			return "", ""
		}
		if containsValue(values, value) {
			return "", ""
		}
		return "", fmt.Sprintf("want %s, got %s", literals(values), literal(value))
	}
}
