package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A schema's tree consists of nil and values with the types *object, []any, string, json.Number and bool. A tree must not be
// changed once it is part of a Schema.

// object is a JSON object that keeps the order of its members, because models write properties in
// the order in which a schema lists them.
type object struct {
	names  []string
	values map[string]any
}

// newObject returns an object with the members given as alternating names and values.
func newObject(pairs ...any) *object {
	o := &object{values: make(map[string]any, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(name string, value any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = value
}

func (o *object) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

func (o *object) remove(name string) {
	delete(o.values, name)
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
}

// MarshalJSON writes the object with sorted names.
func (o *object) MarshalJSON() ([]byte, error) { return appendJSON(nil, o, false), nil }

// clone returns a shallow copy of the object.
func (o *object) clone() *object {
	return &object{slices.Clone(o.names), maps.Clone(o.values)}
}

// object returns the value of the named member if it is an object, and otherwise an empty object.
func (o *object) object(name string) *object {
	if v, ok := o.values[name].(*object); ok {
		return v
	}
	return &object{}
}

// list returns the value of the named member if it is an array, and otherwise nil.
func (o *object) list(name string) []any {
	v, _ := o.values[name].([]any)
	return v
}

// strings returns the strings in the named member, which may be a string or an array of strings.
func (o *object) strings(name string) []string {
	switch v := o.values[name].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// Keywords whose values are schemas, lists of schemas and maps of schemas. A walk follows only these keywords, because a value in
// an enum, for example, is not a schema.
var (
	schemaKeywords = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems"}
	schemaListKeywords = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaMapKeywords  = []string{"properties", "patternProperties", "dependentSchemas", "dependencies",
		"$defs", "definitions"}
)

// mapSchemas returns a copy of o in which f has replaced each schema directly below.
func (o *object) mapSchemas(f func(keyword string, node any) any) *object {
	out := newObject()
	for _, name := range o.names {
		value := o.values[name]
		switch v := value.(type) {
		case []any:
			if slices.Contains(schemaListKeywords, name) {
				list := make([]any, len(v))
				for i, e := range v {
					list[i] = f(name, e)
				}
				value = list
			}
		case *object:
			if slices.Contains(schemaMapKeywords, name) {
				members := newObject()
				for _, n := range v.names {
					members.set(n, f(name, v.values[n]))
				}
				value = members
			} else if slices.Contains(schemaKeywords, name) {
				value = f(name, v)
			}
		case bool:
			if slices.Contains(schemaKeywords, name) {
				value = f(name, v)
			}
		}
		out.set(name, value)
	}
	return out
}

// decode parses a single JSON value. It keeps the order of members and all digits of numbers.
func decode(data []byte) (any, error) {
	// Unmarshal detects malformed text and text that is nested too deeply. Reading tokens, as below, does not.
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, syntaxError(data, err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", position(data, d.InputOffset()), err)
	}
	return v, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if o.has(name) {
				return nil, fmt.Errorf("the name %q occurs twice in one object", name)
			}
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			o.set(name, value)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// syntaxError returns err with the line and column at which JSON text is malformed.
func syntaxError(data []byte, err error) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("want JSON, got nothing")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("want JSON, got malformed text at %s: %w", position(data, syntax.Offset), err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("want JSON, got text that ends at %s", position(data, int64(len(data))))
	}
	return fmt.Errorf("want JSON: %w", err)
}

// position converts an offset in bytes to a line and a column, both counted from 1.
func position(data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// appendJSON appends the JSON of a tree without white space, with names either sorted or in declared order.
func appendJSON(b []byte, v any, declared bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e, declared)
		}
		return append(b, ']')
	case *object:
		names := v.names
		if !declared {
			names = slices.Sorted(slices.Values(names))
		}
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = appendJSON(b, v.values[name], declared)
		}
		return append(b, '}')
	}
	return b // a tree contains no other types
}

func appendString(b []byte, s string) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.Encode(s) // encoding a string into a Buffer cannot fail
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// lookup follows a JSON pointer in its URI form ("#/$defs/a~1b") from the root of a tree.
func lookup(root any, ref string) (any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	node := root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := node.(type) {
		case *object:
			if node, ok = v.values[token]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			node = v[i]
		default:
			return nil, false
		}
	}
	return node, true
}
