package structured_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// draw draws a value of a projected schema.
func draw(t *rapid.T, schema json.RawMessage) json.RawMessage {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(drawer{t, root}.value(root, 4))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type drawer struct {
	*rapid.T
	root map[string]any
}

func (d drawer) value(node any, depth int) any {
	o := object(node)
	if ref, ok := o["$ref"].(string); ok {
		if ref == "#" {
			return d.value(d.root, depth-1)
		}
		return d.value(object(d.root["$defs"])[strings.TrimPrefix(ref, "#/$defs/")], depth-1)
	}
	if list, ok := o["anyOf"].([]any); ok {
		if last := object(list[len(list)-1]); depth <= 0 && last["type"] == "null" {
			return nil
		}
		return d.value(rapid.SampledFrom(list).Draw(d.T, "alternative"), depth)
	}
	if values, ok := o["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(d.T, "value")
	}
	typ, _ := o["type"].(string)
	if list, ok := o["type"].([]any); ok {
		typ = rapid.SampledFrom(list).Draw(d.T, "type").(string)
	}
	low, high := number(o["minimum"], -1e6), number(o["maximum"], 1e6)
	switch typ {
	case "boolean":
		return rapid.Bool().Draw(d.T, "bool")
	case "integer":
		return rapid.Int64Range(int64(low), int64(high)).Draw(d.T, "integer")
	case "number":
		return rapid.Float64Range(low, high).Draw(d.T, "number")
	case "string":
		if about, _ := o["description"].(string); strings.Contains(about, "JSON text of the value") {
			return d.text(about)
		}
		if o["format"] == "date-time" {
			return "2026-11-22T10:00:00Z"
		}
		return rapid.StringMatching(`[a-zA-Z ü"]{0,8}`).Draw(d.T, "string")
	case "array":
		list := []any{}
		most := min(number(o["maxItems"], 3), 3)
		if depth <= 0 {
			most = 0
		}
		for range rapid.IntRange(int(number(o["minItems"], 0)), int(max(most, number(o["minItems"], 0)))).Draw(d.T, "items") {
			list = append(list, d.value(o["items"], depth-1))
		}
		return list
	case "object":
		return d.object(o, depth)
	}
	return nil
}

// text draws JSON text, of the schema in the description.
func (d drawer) text(about string) any {
	var value any = map[string]any{"any": []any{1.5, "two", nil}}
	if _, text, ok := strings.Cut(about, "which fits "); ok {
		var fits map[string]any
		if err := json.Unmarshal([]byte(strings.TrimSuffix(text, ".")), &fits); err != nil {
			d.Fatalf("%s: %v", text, err)
		}
		value = drawer{d.T, fits}.value(fits, 1)
	}
	data, err := json.Marshal(value)
	if err != nil {
		d.Fatal(err)
	}
	return string(data)
}

func (d drawer) object(o map[string]any, depth int) any {
	out := map[string]any{}
	if values := object(o["additionalProperties"]); values != nil && depth > 0 {
		for range rapid.IntRange(0, 2).Draw(d.T, "entries") {
			out[rapid.StringMatching(`[a-z]{1,4}`).Draw(d.T, "key")] = d.value(values, depth-1)
		}
	}
	required, _ := o["required"].([]any)
	properties := object(o["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth > 0 && rapid.Bool().Draw(d.T, "present") {
			out[name] = d.value(properties[name], depth-1)
		}
	}
	return out
}

func number(v any, otherwise float64) float64 {
	if n, ok := v.(float64); ok {
		return max(min(n, 1e15), -1e15)
	}
	return otherwise
}
