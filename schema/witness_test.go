package schema_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stonelayer/stone/schema"
	"pgregory.net/rapid"
)

// drawSchema draws a schema of scalars, x/y objects and arrays, at most depth levels deep.
func drawSchema(t *rapid.T, depth int) any {
	kinds := []string{"any", "types", "enum", "const", "false"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "map", "array", "tuple", "anyOf", "oneOf", "allOf", "ref")
	}
	sub := func() any { return drawSchema(t, depth-1) }
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "types":
		names := []any{"null", "boolean", "integer", "number", "string", "array", "object"}
		return map[string]any{"type": rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "types")}
	case "enum":
		return map[string]any{"enum": rapid.SliceOfNDistinct(rapid.SampledFrom(scalars), 1, 3, rapid.ID).Draw(t, "values")}
	case "const":
		return map[string]any{"const": rapid.SampledFrom(scalars).Draw(t, "value")}
	case "object":
		o := map[string]any{"type": "object"}
		properties := map[string]any{}
		for _, name := range []string{"x", "y"} {
			if rapid.Bool().Draw(t, name) {
				properties[name] = sub()
			}
		}
		o["properties"] = properties
		required := rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"x", "y"}), 0, 2, rapid.ID).Draw(t, "required")
		if rapid.Bool().Draw(t, "closed") { // what must be there and may not be would have no values
			o["additionalProperties"] = false
			required = slices.DeleteFunc(required, func(name any) bool { return properties[name.(string)] == nil })
		}
		o["required"] = required
		return o
	case "map":
		return map[string]any{"type": "object", "additionalProperties": sub()}
	case "array":
		return map[string]any{"type": "array", "items": sub(), "minItems": rapid.IntRange(0, 2).Draw(t, "min")}
	case "tuple":
		return map[string]any{"type": []any{"array", "string"}, "prefixItems": []any{sub()}, "items": sub()}
	case "anyOf", "oneOf", "allOf":
		keyword := rapid.SampledFrom([]string{"anyOf", "allOf", "oneOf"}).Draw(t, "keyword")
		return map[string]any{keyword: []any{sub(), sub()}}
	case "ref":
		return map[string]any{"$ref": "#"}
	case "false":
		return rapid.IntRange(0, 9).Draw(t, "no") > 0
	}
	return map[string]any{}
}

// closed makes the assumptions of Compatible explicit: objects have only the listed properties, and
// each schema of a oneOf has values that no other has.
func closed(node any) any {
	list, ok := node.([]any)
	if ok {
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = closed(v)
		}
		return out
	}
	o, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := map[string]any{}
	for k, v := range o {
		switch k {
		case "enum", "const", "required":
			out[k] = v
		case "oneOf":
			out["anyOf"] = closed(v)
		default:
			out[k] = closed(v)
		}
	}
	if listed, ok := out["properties"].(map[string]any); ok && out["additionalProperties"] == nil {
		out["additionalProperties"] = false
		for _, name := range out["required"].([]any) {
			if listed[name.(string)] == nil {
				listed[name.(string)] = true
			}
		}
	}
	return out
}

var scalars = []any{nil, true, 1, 1.5, "a", "b"}

// universe holds the JSON texts of small values.
var universe = func() []string {
	compose := func(inner []any, second []any) []any {
		out := []any{[]any{}, map[string]any{}}
		for _, a := range inner {
			out = append(out, []any{a}, []any{a, a}, map[string]any{"x": a}, map[string]any{"y": a})
			for _, b := range second {
				out = append(out, []any{a, b}, []any{b, a}, map[string]any{"x": a, "y": b}, map[string]any{"x": b, "y": a})
			}
		}
		return out
	}
	one := append(compose(scalars, scalars), scalars...)
	all := append(compose(one, append(scalars, []any{}, map[string]any{})), one...)
	out := make([]string, len(all))
	for i, v := range all {
		text, _ := json.Marshal(v)
		out[i] = string(text)
	}
	return out
}()

// within ranges over the values that contain one of the universe, nested up to levels deep.
func within(levels int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for level := range levels {
			for _, v := range universe {
				if !wrapped(v, level+1, yield) {
					return
				}
			}
		}
	}
}

func wrapped(v string, level int, yield func(string) bool) bool {
	if level == 0 {
		return yield(v)
	}
	for _, around := range []string{`{"x":%s}`, `{"y":%s}`, `[%s]`, `["a",%s]`, `[{},%s]`} {
		if !wrapped(fmt.Sprintf(around, v), level-1, yield) {
			return false
		}
	}
	return true
}

// TestCompatibleIsCertain finds, for each problem, a value that the producer may write and the
// consumer rejects. (The reverse is not promised.)
func TestCompatibleIsCertain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(v any) []byte { b, _ := json.Marshal(v); return b }
		p, c := drawSchema(t, 2), drawSchema(t, 2)
		must := func(text []byte) *schema.Schema {
			s, err := schema.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		producer, consumer, writes := must(text(p)), must(text(c)), must(text(closed(p)))
		problems := schema.Compatible(producer, consumer)
		if len(problems) == 0 {
			return
		}
		shows := func(value string) bool {
			return consumer.Validate(t.Context(), []byte(value)) != nil && writes.Validate(t.Context(), []byte(value)) == nil
		}
		if slices.ContainsFunc(universe, shows) || !slices.ContainsFunc(universe, func(value string) bool { return writes.Validate(t.Context(), []byte(value)) == nil }) {
			return
		}
		for value := range within(2) { // a problem that only a $ref shows is deeper
			if shows(value) {
				return
			}
		}
		t.Fatalf("no value shows it:\nproducer %s\nconsumer %s\n%v", text(p), text(c), problems)
	})
}
