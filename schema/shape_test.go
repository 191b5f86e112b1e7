package schema

import (
	"testing"

	"pgregory.net/rapid"
)

// TestShapeAgreesWithValidator checks that the validator accepts every value that fits a
// shape, and that most values that it accepts fit.
func TestShapeAgreesWithValidator(t *testing.T) {
	schemas := []string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":["null","string"]}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":{"type":"boolean"}}`,
		`{"type":["array","null"],"items":{"type":"object","required":["b"]}}`,
		`{"items":{"type":"integer"},"required":["a"],"description":"anything else"}`,
		`{"properties":{"a":true,"b":{"items":{"type":"array"}}}}`,
	}
	values := []string{`null`, `true`, `0`, `-3`, `1.0`, `1.5`, `99999999999999999999`, `1e2`, `"a"`, `[]`, `{}`, `[1]`, `[1.0]`, `[[]]`, `{"b":1}`, `[{"b":2}]`}
	fitted := 0
	rapid.Check(t, func(r *rapid.T) {
		s, err := Parse([]byte(rapid.SampledFrom(schemas).Draw(r, "schema")))
		if err != nil {
			r.Fatal(err)
		}
		value := rapid.SampledFrom(values)
		doc := value.Draw(r, "value")
		if rapid.Bool().Draw(r, "object") {
			doc = `{"` + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name") + `":` + doc + `,"b":` + value.Draw(r, "b") + `}`
		}
		v, err := decodeDocument([]byte(doc))
		if err != nil {
			r.Fatal(err)
		}
		sh := s.shape()
		if sh == nil {
			r.Fatalf("%s has no shape", s)
		}
		compiled, err := s.compiled()
		if err != nil {
			r.Fatal(err)
		}
		invalid := compiled.root.Validate(v)
		if sh.fits(v) {
			fitted++
			if invalid != nil {
				r.Errorf("%s fits the shape of %s: %v", doc, s, invalid)
			}
		}
	})
	if fitted == 0 {
		t.Error("nothing fits")
	}
}

func TestNoShape(t *testing.T) {
	for _, text := range []string{`{"minLength":1}`, `false`, `{"$ref":"#"}`, `{"properties":{"a":{"enum":[1]}}}`, `{"items":{"pattern":"a"}}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"additionalProperties":{"not":{}}}`} {
		if shapeOf([]byte(text)) != nil {
			t.Errorf("%s is taken for a shape", text)
		}
	}
}
