package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

func parse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestCompatible(t *testing.T) {
	for _, test := range []struct{ name, producer, consumer, want string }{
		{"anything reads", `{}`, `{"type":"integer"}`, ``},
		{"anything is read", `{"type":"integer"}`, `true`, ``},
		{"type", `{"type":"string"}`, `{"type":"integer"}`, `want integer, the producer writes string`},
		{"integer is a number", `{"type":"integer"}`, `{"type":"number"}`, ``},
		{"number may be no integer", `{"type":"number"}`, `{"type":"integer"}`, `want integer, the producer writes number`},
		{"number of unknown step", `{"type":"number","multipleOf":1}`, `{"type":"integer"}`, ``},
		{"one of two types", `{"type":["string","integer"]}`, `{"type":"string"}`, `want string, the producer writes integer`},
		{"null is left to the decoder", `{"type":["null","array"]}`, `{"type":"array"}`, ``},
		{"only null", `{"type":"null"}`, `{"type":"array"}`, `want array, the producer writes null`},
		{"false reads nothing", `{"type":"string"}`, `false`, `want nothing, the producer writes string`},
		{"false writes nothing", `false`, `{"type":"string"}`, ``},

		{"enum refused", `{"enum":["a","b"]}`, `{"enum":["a","c"]}`, `want "a" or "c", the producer may write "b"`},
		{"enum of another type", `{"enum":["a",1]}`, `{"type":"string"}`, `want string, the producer writes 1`},
		{"enum faces open type", `{"type":"string"}`, `{"enum":["a"]}`, ``},
		{"enum by value", `{"const":1.0}`, `{"enum":[1,"x"]}`, ``},
		{"const by integer", `{"const":1.0}`, `{"type":"integer"}`, ``},
		{"enum null ignored", `{"enum":["a",null]}`, `{"enum":["a"]}`, ``},
		{"enum within type", `{"enum":["a",1],"type":"string"}`, `{"const":"a"}`, ``},

		{"missing", `{"properties":{"a":{}}}`, `{"required":["b"],"type":"object"}`, `b: required, but the producer never writes it`},
		{"optional", `{"properties":{"a":{}}}`, `{"required":["a"]}`, `a: required, but the producer may leave it out`},
		{"required both", `{"type":"object","properties":{"a":{}},"required":["a"]}`, `{"required":["a"]}`, ``},
		{"fewer fields", `{"properties":{"a":{},"b":{}}}`, `{"properties":{"a":{}}}`, ``},
		{"bare object", `{"type":"object"}`, `{"properties":{"a":{"type":"string"}},"required":["a"]}`, ``},
		{"open map", `{"type":"object","additionalProperties":true}`, `{"properties":{"a":{}},"required":["a"]}`, ``},
		{"map values", `{"type":"object","additionalProperties":{"type":"integer"}}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`,
			`a: want string, the producer writes integer`},
		{"map to map", `{"type":"object","additionalProperties":{"type":"integer"}}`,
			`{"additionalProperties":{"type":"string"}}`, `[*]: want string, the producer writes integer`},
		{"forbidden", `{"properties":{"a":{},"b":{}}}`, `{"properties":{"a":{}},"additionalProperties":false}`,
			`b: the producer writes it, but the consumer allows no such property`},
		{"forbidden, but never written", `{"properties":{"a":{},"b":false}}`, `{"properties":{"a":{}},"additionalProperties":false}`, ``},
		{"forbidden, but without values", `{"properties":{"a":{},"b":{"allOf":[{"type":"array"},{"enum":[1]}]}}}`, `{"properties":{"a":{}},"additionalProperties":false}`, ``},
		{"items after one without values", `{"type":["array","string"],"prefixItems":[{"type":"array","enum":[1]}],"items":{"type":"object"}}`,
			`{"items":{"type":"string"}}`, ``},
		{"an alternative without values", `{"anyOf":[{"type":"object","properties":{"a":false},"required":["a"]},{"type":"string"}]}`, `{"type":"string"}`, ``},
		{"fewer items than there must be", `{"anyOf":[{"type":"array","minItems":2,"maxItems":1},{"type":"string"}]}`, `{"type":"string"}`, ``},
		{"pattern unknown", `{"properties":{"a":{}}}`, `{"patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}`, ``},
		{"nested, all of them", `{"properties":{"a":{"properties":{"x y":{"type":"string"}}},"c":{"type":"null"}}}`,
			`{"properties":{"a":{"properties":{"x y":{"type":"integer"}},"required":["z"]},"c":{"type":"string"}}}`,
			"a.z: required, but the producer never writes it\na[\"x y\"]: want integer, the producer writes string\nc: want string, the producer writes null"},
		{"closed producer", `{"type":"object","additionalProperties":false}`, `{"required":["a"]}`, `a: required, but the producer never writes it`},
		{"required without a schema", `{"type":"object","required":["a"]}`, `{"required":["a"]}`, ``},
		{"conditions may add", `{"properties":{"a":{}},"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"required":["b"]}`, ``},
		{"conditions change no type", `{"type":"object","not":{"required":["a"]}}`, `{"type":"string"}`, `want string, the producer writes object`},
		{"conditions may exclude one type", `{"type":["object","string"],"not":{"type":"object"}}`, `{"type":"string"}`, ``},

		{"items", `{"type":"array","items":{"type":"string"}}`, `{"items":{"type":"integer"}}`, `[*]: want integer, the producer writes string`},
		{"items of items", `{"properties":{"a":{"type":"array","items":{"properties":{}}}}}`, `{"properties":{"a":{"items":{"required":["b"]}}}}`,
			`a[*].b: required, but the producer never writes it`},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"},{"type":"string"}]}`,
			`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `[1]: want integer, the producer writes string`},
		{"tuple of fixed length", `{"type":"array","items":{"type":"string"},"maxItems":1}`,
			`{"prefixItems":[{"type":"string"}],"items":false}`, ``},
		{"tuple too short", `{"type":"array","items":{"type":"string"},"minItems":2}`,
			`{"prefixItems":[{"type":"string"}],"items":false}`, `[*]: want nothing, the producer writes string`},

		{"all of the producer's alternatives", `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`, `{"type":"string"}`,
			`want string, the producer writes integer`},
		{"some of the consumer's", `{"type":"string"}`, `{"anyOf":[{"type":"integer"},{"type":"string"}]}`, ``},
		{"none of the consumer's", `{"type":"boolean"}`, `{"anyOf":[{"type":"integer"},{"type":"string"}]}`,
			`the producer writes boolean, which fits none of 2 alternatives: (1) want integer, the producer writes boolean; (2) want string, the producer writes boolean`},
		{"each in its own", `{"type":["string","integer"]}`, `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, ``},
		{"enum over alternatives", `{"enum":["a","b"]}`, `{"anyOf":[{"const":"a"},{"const":"b"}]}`, ``},
		{"optional struct", `{"properties":{"a":{"properties":{}}}}`,
			`{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object","required":["b"]}]}}}`,
			`a.b: required, but the producer never writes it`},
		{"discriminated", `{"properties":{"kind":{"enum":["a","b"]}},"required":["kind"]}`,
			`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"}}},{"type":"object","properties":{"kind":{"const":"b"}}}]}`, ``},
		{"discriminated, unknown kind", `{"properties":{"kind":{"const":"c"}},"required":["kind"]}`,
			`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"}}},{"type":"object","properties":{"kind":{"const":"b"}}}]}`,
			`the producer writes object, which fits none of 2 alternatives: (1) kind: want "a", the producer may write "c"; (2) kind: want "b", the producer may write "c"`},
		{"allOf of the producer", `{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`,
			`{"required":["a","b"]}`, ``},
		{"allOf of the consumer", `{"properties":{"a":{}},"required":["a"]}`, `{"allOf":[{"required":["a"]},{"required":["b"]}]}`,
			`b: required, but the producer never writes it`},
		{"impossible alternative", `{"type":"string","anyOf":[{"type":"integer"},{"minLength":1}]}`, `{"type":"string"}`, ``},

		{"refs", `{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"string"}}}`, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}`,
			`want integer, the producer writes string`},
		{"recursive", `{"properties":{"v":{"type":"string"},"next":{"$ref":"#"}}}`,
			`{"$defs":{"n":{"properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`,
			"v: want integer, the producer writes string\nnext.v: want integer, the producer writes string"},
		{"endless reference", `{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}],"type":"string"}`, ``},
		{"anchors are not followed", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"string"}}}`, `{"type":"integer"}`, ``},
		{"inner id", `{"$ref":"#/$defs/a","$defs":{"a":{"$id":"other","$ref":"#/$defs/b","$defs":{"b":{"type":"string"}}},"b":{"type":"integer"}}}`,
			`{"type":"integer"}`, ``},
		{"values are no schemas", `{"const":{"$ref":"#/nowhere"}}`, `{"type":"string"}`, `want string, the producer writes {"$ref":"#/nowhere"}`},
		{"first draft of tuples", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"string"}]}`,
			`{"prefixItems":[{"type":"integer"}]}`, `[0]: want integer, the producer writes string`},
	} {
		t.Run(test.name, func(t *testing.T) {
			producer, consumer := parse(t, test.producer), parse(t, test.consumer)
			for range 2 { // the second result is cached
				if got := lines(schema.Compatible(producer, consumer)); got != test.want {
					t.Errorf("got\n%s\nwant\n%s", got, test.want)
				}
			}
		})
	}
}

func lines(problems []schema.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return strings.Join(out, "\n")
}

// TestCompatibleTypes compares schemas of Go types.
func TestCompatibleTypes(t *testing.T) {
	type order struct {
		ID    string
		Price float64
		Note  string `json:",omitempty"`
	}
	type brief struct{ ID string }
	type longer struct{ ID, Customer string }
	type noted struct{ Note string }
	type cents struct{ Price int }
	got := func(p, c *schema.Schema, err1, err2 error) string {
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return lines(schema.Compatible(p, c))
	}
	producer, err := schema.For[order]()
	for _, test := range []struct {
		consumer func() (*schema.Schema, error)
		want     string
	}{
		{schema.For[brief], ``},
		{schema.For[map[string]any], ``},
		{schema.For[*order], ``},
		{schema.For[longer], `Customer: required, but the producer never writes it`},
		{schema.For[noted], `Note: required, but the producer may leave it out`},
		{schema.For[cents], `Price: want integer, the producer writes number`},
		{schema.For[map[string]string], `Price: want string, the producer writes number`},
		{schema.For[[]order], `want array or null, the producer writes object`},
	} {
		consumer, err2 := test.consumer()
		if got := got(producer, consumer, err, err2); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", consumer, got, test.want)
		}
	}
}

// TestCompatibleExplosion gives up silently on schemas whose alternatives multiply.
func TestCompatibleExplosion(t *testing.T) {
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf(`{"anyOf":[{"required":["a%d"]},{"required":["b%d"]},{"$ref":"#"}]}`, i, i))
	}
	s := parse(t, `{"type":"object","properties":{"x":{"$ref":"#"}},"allOf":[`+strings.Join(all, ",")+`]}`)
	u := parse(t, `{"type":"object","properties":{"x":{"$ref":"#"}},"allOf":[`+strings.Join(all, ",")+`],"title":"u"}`)
	schema.Compatible(s, u)
	s.At("x", "x", "y")
	s.Properties()
	s.Enum()
	_, _ = none.Project(s.Ordered()) // whether it can does not matter, only that it ends
}
