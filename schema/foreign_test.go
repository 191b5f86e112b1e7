package schema_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

func TestParseForeign(t *testing.T) {
	for _, c := range []struct {
		name, text string
		unchecked  string
		fits, not  string
		err        string
	}{
		{name: "whole", text: `{"type":"object","required":["a"]}`, fits: `{"a":1}`, not: `{}`},
		{name: "look-ahead", text: `{"properties":{"a":{"pattern":"^(?!\\.)[a-z]+$"}}}`, fits: `{"a":"x"}`, not: `{"a":".x"}`},
		{name: "$dynamicRef", text: `{"$dynamicAnchor":"t","properties":{"below":{"$dynamicRef":"#t"},"n":{"type":"integer"}}}`,
			fits: `{"below":{"n":1}}`, not: `{"below":{"n":"x"}}`},
		{name: "pattern", text: `{"properties":{"a":{"type":"string","pattern":"("},"b":{"type":"string"}}}`,
			unchecked: "properties/a/pattern", fits: `{"a":"(","b":"x"}`, not: `{"a":1}`},
		{name: "name of a property", text: `{"patternProperties":{"(":{"type":"string"},"^x":{"type":"integer"}},"additionalProperties":false}`,
			unchecked: "patternProperties/(", fits: `{"y":1,"x":1}`, not: `{"x":"a"}`},
		{name: "type any", text: `{"type":"object","properties":{"a":{"type":"any"},"b":{"type":"integer"}}}`,
			unchecked: "properties/a/type", fits: `{"a":[],"b":1}`, not: `{"b":"x"}`},
		{name: "required of draft 3", text: `{"type":"object","properties":{"a":{"type":"string","required":true}}}`,
			unchecked: "properties/a/required", fits: `{}`, not: `{"a":1}`},
		{name: "reference outside", text: `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"},"b":{"type":"integer"}}}`,
			unchecked: "properties/a/$ref", fits: `{"a":1}`, not: `{"b":"x"}`},
		{name: "reference to nothing", text: `{"properties":{"a":{"items":{"$ref":"#/$defs/gone"}},"b":{"type":"integer"}}}`,
			unchecked: "properties/a/items/$ref", fits: `{"a":[1]}`, not: `{"b":"x"}`},
		{name: "unknown draft", text: `{"$schema":"https://example.com/draft-99","type":"object"}`, unchecked: "$schema", fits: `{}`, not: `1`},
		{name: "properties that are none", text: `{"type":"object","properties":{"a":"string","b":{"type":"integer"}}}`,
			unchecked: "properties/a", fits: `{"a":1}`, not: `{"b":"x"}`},
		{name: "several", text: `{"$schema":"https://example.com/x","type":"object","properties":{"a":{"type":"any","pattern":"("},"b":{"$ref":"#/gone"},"c":{"type":"integer"}}}`,
			unchecked: "properties/a/pattern $schema properties/a/type properties/b/$ref", fits: `{"a":1,"b":2,"c":3}`, not: `{"c":"x"}`},
		{name: "nullable", text: `{"type":"object","properties":{"a":{"type":"string","nullable":true,"maxLength":3},"nullable":{"type":"boolean"}}}`,
			fits: `{"a":null,"nullable":true}`, not: `{"a":null,"nullable":null}`},
		{name: "nullable enum in a list", text: `{"properties":{"a":{"items":{"type":"string","enum":["x"],"nullable":true}}}}`, fits: `{"a":["x",null]}`, not: `{"a":["y"]}`},
		{name: "nullable reference", text: `{"properties":{"a":{"allOf":[{"$ref":"#/$defs/d"}],"nullable":true}},"$defs":{"d":{"type":"integer"}}}`, fits: `{"a":null}`, not: `{"a":"x"}`},
		{name: "nullable false", text: `{"properties":{"a":{"type":"integer","nullable":false}}}`, fits: `{"a":1}`, not: `{"a":null}`},
		{name: "no schema", text: `[]`, err: "want an object"},
		{name: "no JSON", text: `{`, err: "want JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, unchecked, err := schema.ParseForeign([]byte(c.text))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, place := range unchecked {
				got[place] = true
			}
			for _, place := range strings.Fields(c.unchecked) {
				if !got[place] {
					t.Errorf("%s is missing", place)
				}
				delete(got, place)
			}
			if len(got) > 0 {
				t.Errorf("unchecked %v, want %s", unchecked, c.unchecked)
			}
			if err := s.Validate(t.Context(), []byte(c.fits)); err != nil {
				t.Errorf("%s: %v", c.fits, err)
			}
			if s.Validate(t.Context(), []byte(c.not)) == nil {
				t.Errorf("%s fits", c.not)
			}
		})
	}
}
