package schema_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

func TestAt(t *testing.T) {
	const absent = "absent"
	for _, test := range []struct{ schema, path, want string }{
		{`{"properties":{"a":{"type":"string"}}}`, ``, `{"properties":{"a":{"type":"string"}}}`},
		{`{"properties":{"a":{"type":"string"}}}`, `a`, `{"type":"string"}`},
		{`{"properties":{"a":{"type":"string"}}}`, `b`, absent},
		{`{"properties":{"a":{"type":"string"}}}`, `a/b`, absent},
		{`{"properties":{"a":{}}}`, `a/b/c`, `true`},
		{`{}`, `a/b/0`, `true`},
		{`true`, `a`, `true`},
		{`false`, `a`, absent},
		{`{"type":"string"}`, `a`, absent},
		{`{"type":["null","object"]}`, `a`, `true`},
		{`{"type":"object","additionalProperties":false}`, `a`, absent},
		{`{"properties":{"a":{}},"additionalProperties":true}`, `b`, `true`},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, `b`, `{"type":"null"}`},
		{`{"properties":{"a":{}},"patternProperties":{"^b":{"type":"null"}}}`, `b`, `true`},
		{`{"type":"array","items":{"type":"string"}}`, `0`, `{"type":"string"}`},
		{`{"type":"array","items":{"type":"string"}}`, `x`, absent},
		{`{"type":"array","prefixItems":[{"type":"string"},{"type":"null"}],"items":{"type":"boolean"}}`, `1`, `{"type":"null"}`},
		{`{"type":"array","prefixItems":[{"type":"string"},{"type":"null"}],"items":{"type":"boolean"}}`, `7`, `{"type":"boolean"}`},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`, `7`, absent},
		{`{"type":"array"}`, `7`, `true`},
		{`{"properties":{"0":{"type":"string"}}}`, `0`, `{"type":"string"}`},
		{`{"type":"object","properties":{"0":{"type":"string"}}}`, `1`, absent},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"null"}]}`, `a`, `{"type":"string"}`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"}}}]}`, `k`, `{"anyOf":[{"const":"a"},{"const":"b"}]}`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"l":{}}}]}`, `x`, absent},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"type":"object"}]}`, `k`, `true`},
		{`{"properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `a`, `{"type":"string"}`},
		{`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"null"}}}]}`, `b`, `{"type":"null"}`},
		{`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"maxLength":1}}}]}`, `a`, `{"allOf":[{"type":"string"},{"maxLength":1}]}`},
		{`{"properties":{"a":{}},"if":{},"then":{"properties":{"b":{}}}}`, `b`, `true`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/n"}}}}}`, `next/next/v`, `{"type":"string"}`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/n"}}}}}`, `next/next`,
			`{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"string"}}}},"$ref":"#/$defs/n"}`},
		{`{"$id":"https://example.com/tree","properties":{"v":{"type":"string"},"kids":{"items":{"$ref":"#"},"title":"t"}}}`, `kids`,
			`{"$defs":{"root":{"properties":{"kids":{"items":{"$ref":"#/$defs/root"},"title":"t"},"v":{"type":"string"}}}},"items":{"$ref":"#/$defs/root"},"title":"t"}`},
		{`{"$ref":"#"}`, `a`, `true`},
		{`{"properties":{"$ref":{"type":"string"},"enum":{"$ref":"#/properties/$ref"}}}`, `enum`,
			`{"$defs":{"ref":{"type":"string"}},"$ref":"#/$defs/ref"}`},
	} {
		s := parse(t, test.schema)
		var path []string
		if test.path != "" {
			path = strings.Split(test.path, "/")
		}
		for range 2 {
			below, ok := s.At(path...)
			got := below.String()
			if !ok {
				got = absent
			}
			if got != test.want {
				t.Errorf("%s at %q:\n got %s\nwant %s", test.schema, test.path, got, test.want)
			} else if _, err := schema.Parse(below.JSON()); err != nil {
				t.Errorf("%s at %q: %v", test.schema, test.path, err)
			}
		}
	}
}

func TestEnum(t *testing.T) {
	for _, test := range []struct {
		schema string
		want   []any // nil: not closed
	}{
		{`{"enum":["a",1,null]}`, []any{"a", json.Number("1"), nil}},
		{`{"enum":["a",1,null],"type":"string"}`, []any{"a"}},
		{`{"const":{"a":[true]}}`, []any{map[string]any{"a": []any{true}}}},
		{`{"$ref":"#/$defs/e","$defs":{"e":{"enum":["a"]}}}`, []any{"a"}},
		{`{"anyOf":[{"enum":["a","b"]},{"const":"b"},{"type":"null"}]}`, []any{"a", "b", nil}},
		{`{"anyOf":[{"enum":["a","b"]},{"type":"string"}]}`, nil},
		{`{"type":"string"}`, nil},
		{`{}`, nil},
		{`true`, nil},
	} {
		got, ok := parse(t, test.schema).Enum()
		if ok != (test.want != nil) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.schema, got, ok, test.want)
		}
	}
}

func TestProperties(t *testing.T) {
	s := parse(t, `{"properties":{"z":{},"a":{}},"anyOf":[{"$ref":"#/$defs/m"},{"type":"null"}],"$defs":{"m":{"properties":{"m":{}}}}}`)
	if got := s.Properties(); !slices.Equal(got, []string{"a", "m", "z"}) {
		t.Errorf("got %v", got)
	}
}
