package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ofTypes caches schemas by Go type. It is unbounded, because types live as long as the program.
var ofTypes sync.Map // reflect.Type → func() (*Schema, error)

// For returns the schema of the JSON that encoding/json writes for values of type T; see [ForType].
func For[T any]() (*Schema, error) { return ForType(reflect.TypeFor[T]()) }

// ForType returns the schema of the JSON that encoding/json writes for values of t. It infers the schema once for each type; later
// calls return the same pointer. ForType returns an error that names the field if no schema can describe a field, or if JSON would
// lose its data: a channel, a function, a complex number, a map with keys of such a type, an interface with methods, a struct
// without exported fields, two fields with the same tag, or an invalid tag.
func ForType(t reflect.Type) (*Schema, error) {
	if t == nil {
		return nil, nil
	}
	if made, ok := ofTypes.Load(t); ok {
		return made.(func() (*Schema, error))()
	}
	made, _ := ofTypes.LoadOrStore(t, sync.OnceValues(func() (*Schema, error) {
		i := &inference{root: t, open: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, defs: newObject()}
		node, err := i.schema(t, false, t.String())
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if len(i.defs.names) > 0 {
			node.set("$defs", i.defs)
		}
		return newSchema(node), nil
	}))
	return made.(func() (*Schema, error))()
}

// inference infers the schema of one root type. It describes types in place, which every schema reader understands, and uses $defs
// only for types that contain themselves.
type inference struct {
	root  reflect.Type
	open  map[reflect.Type]bool   // types being described; the value is true if the type contains itself
	names map[reflect.Type]string // names of the types in $defs
	defs  *object
}

var (
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	enumType            = reflect.TypeFor[interface{ Enum() []any }]()
)

// schema describes t. If pointer is true, the value is reached through a pointer or a slice, so the methods of *T are always
// called. The argument where is the path of the field in error messages.
func (i *inference) schema(t reflect.Type, pointer bool, where string) (*object, error) {
	if _, inside := i.open[t]; inside {
		if t.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("%s: the type %s points only to itself; use a struct", where, t)
		}
		i.open[t] = true
		return newObject("$ref", i.ref(t)), nil
	}
	if _, done := i.names[t]; done {
		return newObject("$ref", i.ref(t)), nil
	}
	values, err := enumOf(t, where)
	if err != nil {
		return nil, err
	}
	node := byMethod(t, pointer)
	if node == nil {
		if node, err = i.described(t, where); err != nil {
			return nil, err
		}
	}
	if values != nil {
		node.set("enum", values)
	}
	return node, nil
}

// described describes t according to its kind, and moves the description to $defs if t contains itself.
func (i *inference) described(t reflect.Type, where string) (*object, error) {
	if t.Name() == "" {
		return i.byKind(t, where)
	}
	i.open[t] = false
	node, err := i.byKind(t, where)
	recursive := i.open[t]
	delete(i.open, t)
	if err != nil || !recursive || t == i.root {
		return node, err
	}
	i.defs.set(i.names[t], node)
	return newObject("$ref", i.ref(t)), nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// ref returns the reference to a type that contains itself, and names the type if necessary.
func (i *inference) ref(t reflect.Type) string {
	if t == i.root {
		return "#"
	}
	name, ok := i.names[t]
	if !ok {
		base := notInName.ReplaceAllString(t.Name(), "_")
		name = base
		for n := 2; slices.Contains(slices.Collect(maps.Values(i.names)), name); n++ {
			name = base + strconv.Itoa(n)
		}
		i.names[t] = name
	}
	return "#/$defs/" + name
}

// byMethod returns the schema of a type that marshals itself. It returns nil if the type does not, so that its kind determines the
// schema.
func byMethod(t reflect.Type, pointer bool) *object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return newObject("type", "string", "format", "date-time")
	case reflect.TypeFor[json.Number]():
		return newObject("type", "number")
	case reflect.TypeFor[slog.Level]():
		return newObject("type", "string")
	case reflect.TypeFor[big.Int]():
		if pointer {
			return newObject("type", "integer")
		}
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil
	}
	p := reflect.PointerTo(t)
	jsonSure := t.Implements(marshalerType) || pointer && p.Implements(marshalerType)
	textSure := t.Implements(textMarshalerType) || pointer && p.Implements(textMarshalerType)
	switch {
	case jsonSure:
		return newObject()
	case p.Implements(marshalerType):
		return newObject() // the method is called only if the value is addressable
	case textSure:
		return newObject("type", "string")
	case p.Implements(textMarshalerType), p.Implements(unmarshalerType), p.Implements(textUnmarshalerType):
		return newObject()
	}
	return nil
}

func (i *inference) byKind(t reflect.Type, where string) (*object, error) {
	switch t.Kind() {
	case reflect.Bool:
		return newObject("type", "boolean"), nil
	case reflect.Int, reflect.Int64:
		return newObject("type", "integer"), nil
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return newObject("type", "integer", "minimum", json.Number("0")), nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (t.Bits() - 1)
		return newObject("type", "integer", "minimum", number(-limit), "maximum", number(limit-1)), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return newObject("type", "integer", "minimum", number(0), "maximum", number(int64(1)<<t.Bits()-1)), nil
	case reflect.Float32, reflect.Float64:
		return newObject("type", "number"), nil
	case reflect.String:
		return newObject("type", "string"), nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			use := "a type that can be made"
			if t == reflect.TypeFor[error]() {
				use = "a string with its message"
			}
			return nil, fmt.Errorf("%s: JSON cannot be read back into the interface %s; use %s", where, t, use)
		}
		return newObject(), nil
	case reflect.Pointer:
		node, err := i.schema(t.Elem(), true, where)
		if err != nil {
			return nil, err
		}
		return nullable(node).(*object), nil
	case reflect.Map:
		return i.mapping(t, where)
	case reflect.Slice, reflect.Array:
		return i.sequence(t, where)
	case reflect.Struct:
		return i.structure(t, where)
	}
	return nil, fmt.Errorf("%s: no schema describes a %s; leave it out with `json:\"-\"` or change its type", where, t)
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func (i *inference) mapping(t reflect.Type, where string) (*object, error) {
	switch kind := t.Key().Kind(); {
	case kind == reflect.String, t.Key().Implements(textMarshalerType):
	case kind >= reflect.Int && kind <= reflect.Uintptr:
	default:
		return nil, fmt.Errorf("%s: no schema describes a map with keys of type %s; use string keys", where, t.Key())
	}
	values, err := i.schema(t.Elem(), false, where+"[*]")
	if err != nil {
		return nil, err
	}
	return newObject("type", []any{"null", "object"}, "additionalProperties", values), nil
}

func (i *inference) sequence(t reflect.Type, where string) (*object, error) {
	elem, slice := t.Elem(), t.Kind() == reflect.Slice
	if p := reflect.PointerTo(elem); slice && elem.Kind() == reflect.Uint8 &&
		!p.Implements(marshalerType) && !p.Implements(textMarshalerType) {
		return newObject("type", []any{"null", "string"}, "contentEncoding", "base64"), nil
	}
	items, err := i.schema(elem, slice, where+"[*]")
	if err != nil {
		return nil, err
	}
	if slice {
		return newObject("type", []any{"null", "array"}, "items", items), nil
	}
	length := number(int64(t.Len()))
	return newObject("type", "array", "items", items, "minItems", length, "maxItems", length), nil
}

func (i *inference) structure(t reflect.Type, where string) (*object, error) {
	if err := loss(t, where); err != nil {
		return nil, err
	}
	properties, required := newObject(), []any{}
	for _, f := range fieldsOf(t) {
		node, err := i.field(f, where+"."+f.Name)
		if err != nil {
			return nil, err
		}
		properties.set(f.JSON, node)
		if !(f.ViaPointer || f.omitted()) {
			required = append(required, f.JSON)
		}
	}
	node := newObject("type", "object", "properties", properties)
	if len(required) > 0 {
		node.set("required", required)
	}
	return node, nil
}

// otherTag matches a tag for another library, such as `jsonschema:"required,minimum=1"`.
var otherTag = regexp.MustCompile(`^[^ \t\n]*=`)

func (i *inference) field(f field, where string) (*object, error) {
	var node *object
	if f.quoted() {
		node = newObject("type", "string")
		if f.Type.Kind() == reflect.Pointer {
			node = nullable(node).(*object)
		}
	} else {
		var err error
		if node, err = i.schema(f.Type, false, where); err != nil {
			return nil, err
		}
	}
	if list, ok := f.Tag.Lookup("enum"); ok {
		if !slices.Contains(node.strings("type"), "string") || list == "" || node.has("contentEncoding") {
			hint := ""
			if list != "" {
				hint = "; a type of another kind lists its values in a method Enum() []any"
			}
			return nil, fmt.Errorf("%s: the tag enum:%q needs a string field and at least one value%s", where, list, hint)
		}
		values := []any{}
		for _, v := range tagValues(list) {
			values = append(values, v)
		}
		if slices.Contains(node.strings("type"), "null") {
			values = append(values, nil)
		}
		node.set("enum", values)
	}
	if text, ok := f.Tag.Lookup("jsonschema"); ok {
		if text == "" || otherTag.MatchString(text) {
			return nil, fmt.Errorf("%s: the tag jsonschema:%q needs a description that is not of the form key=value%s", where, text, enumHint(text))
		}
		node.set("description", text)
	}
	return node, nil
}

// enumHint returns a hint to use the tag enum if a description lists values, and otherwise "".
func enumHint(text string) string {
	var values []string
	for _, part := range strings.Split(text, ",") {
		if value, ok := strings.CutPrefix(part, "enum="); ok {
			values = append(values, value)
		}
	}
	if values == nil {
		return ""
	}
	return fmt.Sprintf("; a list of values is the tag enum:%q", strings.Join(values, ","))
}

// enumOf returns the closed list of values from the type's Enum method, or nil if it has none.
func enumOf(t reflect.Type, where string) (values []any, err error) {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer || !hasEnum(t) {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: method Enum of a zero %s panics: %v", where, t, r)
		}
	}()
	listed := reflect.New(t).Interface().(interface{ Enum() []any }).Enum()
	for _, v := range listed {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		if err := e.Encode(v); err != nil {
			return nil, fmt.Errorf("%s: method Enum of %s lists a value that is not JSON: %w", where, t, err)
		}
		value, err := decode(text.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: method Enum of %s: %w", where, t, err)
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%s: method Enum of %s lists no value", where, t)
	}
	return values, nil
}

// hasEnum reports whether t has a method Enum. It ignores the method if a struct has it only through an embedded type.
func hasEnum(t reflect.Type) bool {
	if !reflect.PointerTo(t).Implements(enumType) {
		return false
	}
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			if f.Anonymous && (f.Type.Implements(enumType) || reflect.PointerTo(f.Type).Implements(enumType)) {
				return false
			}
		}
	}
	return true
}
