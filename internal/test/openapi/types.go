package openapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/fields"
	"github.com/stonelayer/stone/journal"
)

// renamed contains new names for types whose Go names are already used in the document, or are not meaningful there.
var renamed = map[reflect.Type]string{
	reflect.TypeFor[event.Notice](): "RunNotice",
	reflect.TypeFor[journal.Row]():  "Step",
}

// closed contains the types that have no values other than their constants.
var closed = map[reflect.Type]bool{reflect.TypeFor[journal.State](): true}

// schema returns the schema of a type, or a reference to it.
func (t *types) schema(typ reflect.Type) object {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[budget.Limits]():
		count := object{"type": "integer", "minimum": 0}
		return object{"type": "object", "properties": object{"max-usd": object{"type": "number", "format": "double", "minimum": 0}, "max-tokens": count, "max-roundtrips": count}}
	case reflect.TypeFor[dag.ID]():
		return object{"type": "string", "pattern": "^[0-9a-f]{64}$"}
	}
	if typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		t.fail("%v writes its own JSON: say what it is", typ)
		return object{}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return t.schema(typ.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": t.schema(typ.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": t.schema(typ.Elem())}
	case reflect.Struct:
		return t.named(typ, t.structure)
	case reflect.String:
		if closed[typ] {
			return t.named(typ, t.list)
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	}
	t.fail("%v has no schema", typ)
	return object{}
}

// named returns a reference to the schema of a named type, and generates the schema if it does not exist yet.
func (t *types) named(typ reflect.Type, make func(reflect.Type) object) object {
	name := renamed[typ]
	if name == "" {
		name = typ.Name()
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	switch known := t.seen[name]; known {
	case typ:
		return ref
	case nil:
	default:
		t.fail("%v and %v have the name %s: rename one", known, typ, name)
	}
	if t.seen == nil {
		t.seen = map[string]reflect.Type{}
	}
	t.seen[name] = typ
	s := make(typ)
	if text := t.of(typ, ""); text != "" {
		s["description"] = strings.TrimPrefix(text, typ.Name()+" ")
	}
	t.schemas[name] = s
	return ref
}

func (t *types) structure(typ reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range fields.Of(typ) {
		s := t.schema(f.Type)
		if k := f.Type.Kind(); !f.OmitEmpty && !f.OmitZero {
			required = append(required, f.JSON)
			if k == reflect.Pointer || k == reflect.Map {
				t.fail("%v.%s may be null: leave it out then", typ, f.Name)
			}
		}
		if enum, ok := f.Tag.Lookup("enum"); ok {
			s["enum"] = strings.Split(enum, ",")
		}
		in := typ
		for _, i := range f.Path[:len(f.Path)-1] {
			in = in.Field(i).Type
		}
		if text := t.of(in, f.Name); text != "" {
			s["description"] = text
		}
		properties[f.JSON] = s
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// list returns the schema of a type in closed.
func (t *types) list(typ reflect.Type) object {
	values := t.constants(typ)
	if len(values) == 0 {
		t.fail("%v has no constants", typ)
	}
	return object{"type": "string", "enum": values}
}
