package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawSchema draws a schema with references, all keywords that lead from schema to schema, and
// few names, so that these coincide.
func drawSchema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]any{true, false, map[string]any{}, map[string]any{"type": "integer"}, map[string]any{"type": []any{"string", "null"}},
			map[string]any{"const": 1}, map[string]any{"enum": []any{"a", 2}}, map[string]any{"pattern": "^a"}, map[string]any{"maxLength": 1},
			map[string]any{"$ref": "#"}, map[string]any{"$ref": "#/$defs/x"}, map[string]any{"$ref": "#/$defs/y"}, map[string]any{"$dynamicRef": "#d"},
			map[string]any{"$ref": "other"}, map[string]any{"minimum": 2}, map[string]any{"required": []any{"b"}}}).Draw(t, "leaf")
	}
	one := func() any { return drawSchema(t, depth-1) }
	list := func() any {
		out := []any{one()}
		for rapid.Bool().Draw(t, "more") && len(out) < 3 {
			out = append(out, one())
		}
		return out
	}
	s := map[string]any{}
	for range rapid.IntRange(1, 3).Draw(t, "keywords") {
		switch k := rapid.SampledFrom([]string{"properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "unevaluatedProperties",
			"items", "prefixItems", "contains", "unevaluatedItems", "allOf", "anyOf", "oneOf", "not", "if", "contentSchema", "required", "type"}).Draw(t, "keyword"); k {
		case "properties", "dependentSchemas":
			s[k] = map[string]any{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"): one()}
		case "patternProperties":
			s[k] = map[string]any{rapid.SampledFrom([]string{"a", "."}).Draw(t, "name"): one()}
		case "prefixItems", "allOf", "anyOf", "oneOf":
			s[k] = list()
		case "if":
			s["if"], s["then"], s["else"] = one(), one(), one()
		case "contains":
			s[k], s["minContains"], s["maxContains"] = one(), rapid.IntRange(0, 2).Draw(t, "min"), 2
		case "contentSchema":
			s[k], s["contentMediaType"] = one(), "application/json"
		case "required":
			s[k] = []any{"a"}
		case "type":
			s[k] = rapid.SampledFrom([]string{"object", "array", "string"}).Draw(t, "type")
		default:
			s[k] = one()
		}
	}
	return s
}

func drawValue(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]any{nil, 1, 2, 3.5, "a", "bb", "1", `{"a":1}`, true, map[string]any{}, []any{}}).Draw(t, "value")
	}
	if rapid.Bool().Draw(t, "array") {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 3).Draw(t, "items")
	}
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "ac"}), rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 3).Draw(t, "fields")
}

// TestWalkAgrees compares the walk with the library, which passes the official suite.
func TestWalkAgrees(t *testing.T) {
	var fits, not int
	rapid.Check(t, func(t *rapid.T) {
		root, _ := drawSchema(t, 3).(map[string]any)
		if root == nil {
			root = map[string]any{}
		}
		defs := map[string]any{"x": drawSchema(t, 2), "y": drawSchema(t, 2)}
		for name, id := range map[string]string{"o": "other"} {
			other := map[string]any{"$id": id, "$defs": map[string]any{"d": map[string]any{"$dynamicAnchor": "d", "type": "object"}}}
			other["properties"] = map[string]any{"a": map[string]any{"$dynamicRef": "#d"}}
			defs[name] = other
		}
		defs["d"] = map[string]any{"$dynamicAnchor": "d", "anyOf": []any{drawSchema(t, 1), map[string]any{"type": "integer"}}}
		root["$defs"] = defs
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		value, err := json.Marshal(drawValue(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		document, err := decodeDocument(value)
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.compiled()
		if err != nil {
			t.Fatal(err)
		}
		want := g.root.Validate(document)
		got, err := g.validate(context.Background(), document)
		if err != nil || (got == nil) != (want == nil) {
			t.Fatalf("%s\n%s\n got %v, %v\nwant %v", text, value, got, err, want)
		}
		if got == nil {
			fits++
		} else if not++; len(report(got, document, s)) == 0 {
			t.Fatalf("%s\n%s\ndoes not fit without a reason", text, value)
		}
	})
	if fits == 0 || not == 0 {
		t.Errorf("%d fit, %d do not", fits, not)
	}
}

func TestDynamicReferences(t *testing.T) {
	for _, test := range []struct{ schema, value string }{
		{`{"$id":"tree","$ref":"node","$defs":{"n":{"$id":"node","$dynamicAnchor":"n","properties":{"next":{"$dynamicRef":"#n"}}},"d":{"$dynamicAnchor":"n","required":["x"]}}}`, `{"next":{}}`},
		{`{"$id":"tree","$ref":"node","$defs":{"n":{"$id":"node","$dynamicAnchor":"n","properties":{"next":{"$dynamicRef":"#n"}}},"d":{"$dynamicAnchor":"n","required":["x"]}}}`, `{"next":{"x":1}}`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":"strin"}}}`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":"string"}}}`},
		{`{"$ref":"https://json-schema.org/draft/2019-09/schema"}`, `{"properties":{"a":{"minimum":"x"}}}`},
		{`{"$ref":"https://json-schema.org/draft/2019-09/schema"}`, `{"properties":{"a":{"minimum":1}}}`},
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"properties":{"a":{"minimum":"x"}}}`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"a","$recursiveAnchor":true,"$ref":"b","required":["k"],"$defs":{"b":{"$id":"b","$recursiveAnchor":true,"properties":{"n":{"$recursiveRef":"#"}}}}}`, `{"k":1,"n":{}}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `["a",1]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"c":1}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"$ref":"#/definitions/s","type":"integer"}`, `"a"`},
	} {
		s, err := Parse([]byte(test.schema))
		if err != nil {
			t.Fatalf("%s: %v", test.schema, err)
		}
		document, err := decodeDocument([]byte(test.value))
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.compiled()
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.validate(t.Context(), document)
		if want := g.root.Validate(document); err != nil || (got == nil) != (want == nil) {
			t.Errorf("%s\n%s\n got %v, %v\nwant %v", test.schema, test.value, got, err, want)
		}
	}
}

// hostile returns schemas for which the library takes exponential time in the depth of a value, or
// in their own size.
func hostile(n int) map[string][2]string {
	chain := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range n {
		chain += fmt.Sprintf(`"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[2]d"}]},`, i, i+1)
	}
	chain += fmt.Sprintf(`"a%d":false}}`, n)
	deep := strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n)
	list := strings.Repeat(`[`, n) + "0" + strings.Repeat("]", n)
	return map[string][2]string{
		"anyOf":       {`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["a"]}`, deep},
		"oneOf":       {`{"properties":{"a":{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["a"]}`, deep},
		"allOf":       {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["b"]}`, deep},
		"not":         {`{"properties":{"a":{"allOf":[{"not":{"$ref":"#"}},{"not":{"$ref":"#"}}]}},"required":["a"]}`, deep},
		"if":          {`{"properties":{"a":{"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"}}},"required":["a"]}`, deep},
		"patterns":    {`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"}},"anyOf":[{"required":["a"]}]}`, deep},
		"dynamic":     {`{"$dynamicAnchor":"d","properties":{"a":{"anyOf":[{"$dynamicRef":"#d"},{"$dynamicRef":"#d"}]}},"required":["a"]}`, deep},
		"items":       {`{"items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]},"type":"array"}`, list},
		"contains":    {`{"contains":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]},"type":"array"}`, list},
		"unevaluated": {`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],"unevaluatedProperties":false,"required":["a"]}`, deep},
		"chain":       {chain, `1`},
		"chain deep":  {chain, deep},
	}
}

// TestWorkIsPolynomial counts steps: twice the depth may take eight times the steps.
func TestWorkIsPolynomial(t *testing.T) {
	steps := func(test [2]string, explain bool) int {
		s, err := Parse([]byte(test[0]))
		if err != nil {
			t.Fatal(err)
		}
		document, err := decodeDocument([]byte(test[1]))
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.compiled()
		if err != nil {
			t.Fatal(err)
		}
		w := &walk{ctx: t.Context(), graph: g, known: map[visit]*verdict{}, scope: &scope{}}
		w.on(g.root, document, nil)
		if w.explain = explain; explain {
			w.on(g.root, document, nil)
			w.explain = false
		}
		if w.stop != nil {
			t.Fatal(w.stop)
		}
		return w.steps
	}
	small, large := hostile(40), hostile(80)
	for name, test := range small {
		for _, explain := range []bool{false, true} {
			a, b := steps(test, explain), steps(large[name], explain)
			if a > 100_000 || b > 8*a {
				t.Errorf("%s, explained %v: %d steps at depth 40, %d at 80", name, explain, a, b)
			}
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	for name, test := range hostile(60) {
		s, err := Parse([]byte(test[0]))
		if err != nil {
			t.Fatal(err)
		}
		var invalid *ValidationError
		if err := s.Validate(t.Context(), []byte(test[1])); errors.As(err, &invalid) && len(invalid.Detail()) > 200_000 {
			t.Errorf("%s: %d bytes of errors", name, len(invalid.Detail()))
		}
	}
	s, err := Parse([]byte(`{"items":{"type":"string","minLength":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	var invalid *ValidationError
	err = s.Validate(t.Context(), []byte("["+strings.Repeat("1,", 100_000)+"1]"))
	if !errors.As(err, &invalid) || len(invalid.Problems) != maxProblems {
		t.Errorf("%v", err)
	}
}

func TestValidateEnds(t *testing.T) {
	s, err := Parse([]byte(`{"items":{"items":{"minimum":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	value := "[[" + strings.Repeat("1,", 1000) + "1]]"
	if err := s.Validate(ctx, []byte(value)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	nested := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	s, err = Parse([]byte(`{"items":{"allOf":[{"allOf":[{"allOf":[{"allOf":[{"$ref":"#"}]}]}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(t.Context(), []byte(nested)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("depth: %v", err)
	}
	s, err = Parse([]byte(`{"pattern":"(a?){900}b"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(t.Context(), []byte(`"`+strings.Repeat("a", 1<<20)+`"`)); err == nil || !strings.Contains(err.Error(), "too much work") {
		t.Errorf("pattern: %v", err)
	}
}
