package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `1`, ``},
		{`true`, `{"a":[1,{}]}`, ``},
		{`{"type":"integer"}`, `"x"`, `(root): want integer, got string "x"`},
		{`{"type":"integer"}`, `1.5`, `(root): want integer, got number 1.5`},
		{`{"type":["null","string"]}`, `[1,2]`, `(root): want string or null, got an array of 2`},
		{`{"type":"string"}`, `{"a":1}`, `(root): want string, got an object`},
		{`{"type":"string"}`, `false`, `(root): want string, got false`},
		{`{"type":"string"}`, `null`, `(root): want string, got null`},
		{`false`, `1`, `(root): want nothing here, got integer 1`},
		{`{"enum":["a",2,null]}`, `"b"`, `(root): want "a", 2 or null, got string "b"`},
		{`{"const":{"a":[1]}}`, `1`, `(root): want {"a":[1]}, got integer 1`},
		{`{"type":"integer"}`, `"` + strings.Repeat("é", 100) + `"`, `(root): want integer, got string "` + strings.Repeat("é", 58) + "…"},

		// every problem, in the order of the places
		{`{"properties":{"items":{"items":{"properties":{"price":{"type":"number"}},"required":["id","price"]}}},"required":["b","a"]}`,
			`{"items":[{"price":"x","id":1},3,{},{"id":1,"price":2},{"price":1},5,6,7,8,9,{}]}`,
			"(root): property \"a\" is required, but missing\n" +
				"(root): property \"b\" is required, but missing\n" +
				"items[0].price: want number, got string \"x\"\n" +
				"items[2]: property \"id\" is required, but missing\n" +
				"items[2]: property \"price\" is required, but missing\n" +
				"items[4]: property \"id\" is required, but missing\n" +
				"items[10]: property \"id\" is required, but missing\n" +
				"items[10]: property \"price\" is required, but missing"},
		{`{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"c":1,"d":2}`,
			"(root): property \"c\" is not allowed; allowed: a, b\n(root): property \"d\" is not allowed; allowed: a, b"},
		{`{"additionalProperties":false}`, `{"c":1}`, `(root): property "c" is not allowed`},
		{`{"additionalProperties":{"type":"null"}}`, `{"a.b":1,"":2,"3":4,"ä":5}`,
			"[\"\"]: want null, got integer 2\n3: want null, got integer 4\n[\"a.b\"]: want null, got integer 1\nä: want null, got integer 5"},

		// numbers
		{`{"maximum":9007199254740993}`, `9007199254740993`, ``},
		{`{"maximum":9007199254740992}`, `9007199254740993`, `(root): want at most 9007199254740992, got integer 9007199254740993`},
		{`{"const":123456789012345678901234567890}`, `123456789012345678901234567891`,
			`(root): want 123456789012345678901234567890, got integer 123456789012345678901234567891`},
		{`{"minimum":0.5}`, `0.25`, `(root): want at least 0.5, got number 0.25`},
		{`{"exclusiveMinimum":0}`, `0`, `(root): want more than 0, got integer 0`},
		{`{"exclusiveMaximum":0}`, `0`, `(root): want less than 0, got integer 0`},
		{`{"multipleOf":0.1}`, `0.25`, `(root): want a multiple of 0.1, got number 0.25`},
		{`{"minimum":0}`, `1e999999999`, `(root): want a number within 64-bit floating point, got 1e999999999`},
		{`{"minimum":0}`, `[1e-5000000]`, `(root): want a number within 64-bit floating point, got 1e-5000000`},

		// strings, arrays, objects
		{`{"minLength":2}`, `"é"`, `(root): want at least 2 characters, got 1`},
		{`{"maxLength":2}`, `"abc"`, `(root): want at most 2 characters, got 3`},
		{`{"pattern":"^a"}`, `"b"`, `(root): want a string that matches ^a, got string "b"`},
		{`{"format":"date-time"}`, `"today"`, `(root): want a string of format date-time, got string "today"`},
		{`{"contentEncoding":"base64"}`, `"?"`, `(root): want a string in base64, got string "?"`},
		{`{"contentMediaType":"application/json"}`, `"{"`, `(root): want content of type application/json, got string "{"`},
		{`{"minItems":1}`, `[]`, `(root): want at least 1 items, got 0`},
		{`{"maxItems":1}`, `[1,2]`, `(root): want at most 1 items, got 2`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `(root): want items that differ, but items 0 and 2 are equal`},
		{`{"contains":{"type":"string"}}`, `[1]`, `(root): want at least one item that fits the schema of contains, got an array of 1`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["a"]`, `(root): want at least 2 items that fit the schema of contains, got an array of 1`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `(root): want at most 1 items that fit the schema of contains, got 2`},
		{`{"minProperties":1}`, `{}`, `(root): want at least 1 properties, got 0`},
		{`{"maxProperties":0}`, `{"a":1}`, `(root): want at most 0 properties, got 1`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `(root): name of property "ab": want at most 1 characters, got 2`},
		{`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`, `(root): property "a" requires "b" or "c" as well`},
		{`{"not":{"type":"string"}}`, `"a"`, `(root): want anything but what the schema of not describes, got string "a"`},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `[1]: want nothing here, got integer 2`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":1}`, `b: want nothing here, got integer 1`},

		// alternatives
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `(root): want string or null, got integer 1`},
		{`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"type":"object","required":["x","y"]}}}`, `{"x":1}`,
			`(root): property "y" is required, but missing`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"}}},{"type":"null"}]}`, `{"k":"c"}`,
			`(root): fits none of 3 alternatives: (1) k: want "a", got string "c"; (2) k: want "b", got string "c"`},
		{`{"oneOf":[{"minimum":1},{"maximum":5}]}`, `3`, `(root): want exactly one of the alternatives to fit, but 1 and 2 both do`},
		{`{"allOf":[{"type":"string"},{"$ref":"#/$defs/s"}],"$defs":{"s":{"type":"string"}}}`, `1`, `(root): want string, got integer 1`},
		{`{"if":{"type":"object"},"then":{"required":["a"]}}`, `{}`, `(root): property "a" is required, but missing`},
		{`{"$ref":"#"}`, `1`, `(root): the schema refers to itself without end at #`},

		// text that is not a JSON value
		{`{}`, ``, `(root): want JSON, got nothing`},
		{`{}`, " \n", `(root): want JSON, got nothing`},
		{`{}`, "{\n  \"a\": x}", `(root): want JSON, got malformed text at line 2, column 8: invalid character 'x' looking for beginning of value`},
		{`{}`, `{"a":`, `(root): want JSON, got text that ends at line 1, column 5`},
		{`{}`, `1 2`, `(root): want one JSON value, got more at line 1, column 3`},
		{`{}`, `{} }`, `(root): want one JSON value, got more at line 1, column 4`},
	} {
		err := parse(t, test.schema).Validate(t.Context(), []byte(test.value))
		got := ""
		if err != nil {
			var invalid *schema.ValidationError
			if !errors.As(err, &invalid) {
				t.Errorf("%s: %s: %T %v", test.schema, test.value, err, err)
				continue
			}
			got = invalid.Detail()
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %s: Error has several lines: %v", test.schema, test.value, err)
			}
		}
		if got != test.want {
			t.Errorf("%s: %s:\n got %s\nwant %s", test.schema, test.value, got, test.want)
		}
	}
}

func TestValidationErrorCounts(t *testing.T) {
	err := parse(t, `{"required":["a","b","c"]}`).Validate(t.Context(), []byte(`{}`))
	if want := `does not fit the schema: property "a" is required, but missing (and 2 more)`; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := new(schema.ValidationError); err.Error() == "" || err.Detail() != "" {
		t.Errorf("the zero error: %q, %q", err.Error(), err.Detail())
	}
}

func TestNilIsAnything(t *testing.T) {
	var s *schema.Schema
	if err := s.Validate(t.Context(), []byte(`{"a":1}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate(t.Context(), []byte(`{`)); err == nil {
		t.Error("malformed JSON is not anything")
	}
	below, ok := s.At("a")
	values, closed := s.Enum()
	if string(s.JSON()) != "true" || string(s.Ordered()) != "true" || below != nil || !ok || values != nil || closed || s.Properties() != nil {
		t.Error("a nil schema is not anything")
	}
	if schema.Compatible(s, parse(t, `false`)) != nil || schema.Compatible(parse(t, `{}`), s) != nil {
		t.Error("a nil schema is not compatible")
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, `schema: want JSON, got nothing`},
		{"{\n\"a\": }", `schema: want JSON, got malformed text at line 2, column 6: invalid character '}' looking for beginning of value`},
		{`{"type":"string","type":"null"}`, `schema: line 1, column 23: the name "type" occurs twice in one object`},
		{`{} {}`, `schema: want JSON, got malformed text at line 1, column 4: invalid character '{' after top-level value`},
		{`[]`, `schema: want an object or a boolean, got an array of 0`},
		{`{"properties":{"a":{"type":"strin"}}}`, `schema: not a JSON Schema: properties.a.type: ` +
			`want "array", "boolean", "integer", "null", "number", "object" or "string", got string "strin"`},
		{`{"required":"a"}`, `schema: not a JSON Schema: required: want array, got string "a"`},
		{`{"pattern":"(?=a"}`, `schema: not a JSON Schema: pattern: want a regular expression of ECMA-262, got string "(?=a"`},
		{`{"maximum":1e99999}`, `schema: want a number within 64-bit floating point, got 1e99999`},
		{`{"$ref":"https://example.com/s.json"}`, `schema: the reference "https://example.com/s.json" refers outside the schema, and no other document is loaded; copy its target into $defs`},
		{`{"$ref":"file:///etc/passwd"}`, `schema: the reference "file:///etc/passwd" refers outside the schema, and no other document is loaded; copy its target into $defs`},
		{`{"$ref":"other.json#/a"}`, `schema: the reference "other.json" refers outside the schema, and no other document is loaded; copy its target into $defs`},
		{`{"$schema":"https://example.com/meta"}`, `schema: the reference "https://example.com/meta" refers outside the schema, and no other document is loaded; copy its target into $defs`},
		{`{"$ref":"#/nowhere"}`, `schema: unresolved reference "#/nowhere"`},
		{`{"$ref":"#nowhere"}`, `schema: unresolved reference "#nowhere"`},
	} {
		_, err := schema.Parse([]byte(test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}
