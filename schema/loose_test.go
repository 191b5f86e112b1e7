package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone/schema"
)

var anything = schema.Subset{Cycles: "all", Accepts: func(keyword string, _ any) bool { return keyword != "pattern" && keyword != "prefixItems" }}

func TestLoose(t *testing.T) {
	for _, c := range []struct {
		name, text, want, told string
	}{
		{"required alternatives", `{"type":"object","properties":{"path":{"type":"string"},"url":{"type":"string"}},"oneOf":[{"required":["path"]},{"required":["url"]}]}`,
			`{"type":"object","properties":{"path":{"type":"string"},"url":{"type":"string"}}}`,
			`Must fit {"oneOf":[{"required":["path"]},{"required":["url"]}]}.`},
		{"union of properties", `{"anyOf":[
			{"type":"object","properties":{"kind":{"const":"a"},"id":{"type":"string"},"x":{"type":"integer"}},"required":["kind","id"],"additionalProperties":false},
			{"$ref":"#/$defs/b"}],"$defs":{"b":{"type":"object","properties":{"kind":{"const":"b"},"id":{"type":"integer"}},"required":["id","kind"],"additionalProperties":false}}}`,
			`{"type":"object","properties":{"kind":{"type":"string","enum":["a","b"]},"id":{"anyOf":[{"type":"string"},{"type":"integer"}]},"x":{"type":"integer"}},
				"required":["kind","id"],"additionalProperties":false}`,
			`Must fit {"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"id":{"type":"string"},"x":{"type":"integer"}},"required":["kind","id"],"additionalProperties":false},{"$ref":"#/$defs/b"}]}.`},
		{"all parts", `{"allOf":[{"$ref":"#/definitions/base"},{"properties":{"b":{"type":"integer"}},"required":["b"]}],"definitions":{"base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`, ``},
		{"lost keywords", `{"type":"object","properties":{"a":{"type":"string","description":"The name.","pattern":"^(?!x)","minLength":2,"default":"yes"}},"if":{"required":["a"]},"then":{"required":["b"]}}`,
			`{"type":"object","properties":{"a":{"type":"string","minLength":2,"default":"yes","description":"The name. Must fit {\"pattern\":\"^(?!x)\"}."}}}`,
			`Must fit {"if":{"required":["a"]},"then":{"required":["b"]}}.`},
		{"tuple of draft 7", `{"type":"object","properties":{"at":{"type":"array","items":[{"type":"number"},{"type":"number"}]},"list":{"type":"array"}}}`,
			`{"type":"object","properties":{"at":{"type":"array","items":{},"description":"Must fit {\"prefixItems\":[{\"type\":\"number\"},{\"type\":\"number\"}]}."},"list":{"type":"array","items":{}}}}`, ``},
		{"description beside a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t","description":"One."},"b":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string","description":"A t."}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"One."},"b":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string","description":"A t."}}}`, ``},
		{"recursion", `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"below":{"allOf":[{"$ref":"#/$defs/t"}],"description":"More."}}}}}`,
			`{"type":"object","properties":{"below":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"below":{"$ref":"#/$defs/t"}}}}}`, ``},
		{"nothing", `{}`, `{"type":"object","properties":{}}`, ``},
		{"required without a schema", `{"type":"object","required":["a"],"properties":{"b":false,"c":true}}`, `{"type":"object","properties":{"c":{},"a":{}},"required":["a"]}`, ``},
		{"null in an enum", `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}}}`, ``},
		{"dynamic reference", `{"$dynamicAnchor":"t","type":"object","properties":{"below":{"$dynamicRef":"#t"}}}`,
			`{"type":"object","properties":{"below":{"description":"Must fit {\"$dynamicRef\":\"#t\"}."}}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, told, err := anything.Loose([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !sameJSON(t, got, []byte(c.want)) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if told != c.told {
				t.Errorf("told\n got %s\nwant %s", told, c.told)
			}
		})
	}
	for _, bad := range []string{`[]`, `{"type":"string"}`, `{`} {
		if got, _, err := anything.Loose([]byte(bad)); err == nil {
			t.Errorf("%s gives %s", bad, got)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("no JSON: %s or %s", a, b)
	}
	canon := func(v any) string { d, _ := json.Marshal(v); return string(d) }
	return canon(x) == canon(y)
}
