package schema_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/schema"
)

// FuzzParse takes any text as a schema and as a value: nothing may panic. An accepted schema keeps
// its text and is compatible with itself.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"],"additionalProperties":false}`,
		`{"anyOf":[{"$ref":"#/$defs/x"},{"type":["null","integer"]}],"$defs":{"x":{"oneOf":[{"const":1e5},{"enum":["a"]}]}}}`,
		`{"allOf":[{"$ref":"#"},{"prefixItems":[true,false],"items":{"not":{}}}],"if":{},"then":{"minimum":1}}`,
		`{"$id":"a","$defs":{"b":{"$id":"c","$anchor":"d","$dynamicRef":"#d"}},"$ref":"#/$defs/b"}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true,"minimum":0,"items":[{}]}`,
	} {
		f.Add(seed, `{"a":[1,null,{"b":"c"}]}`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %v", err)
			}
			return
		}
		if err := s.Validate(t.Context(), []byte(value)); err != nil {
			_ = err.Error()
		}
		again, err := schema.Parse(s.JSON())
		if err != nil || again.String() != s.String() {
			t.Fatalf("the text of %s is another schema: %v, %v", text, again, err)
		}
		schema.Compatible(s, again)
		for _, path := range [][]string{{"a"}, {"0"}, {"a", "0", "b"}} {
			if below, ok := s.At(path...); ok {
				if _, err := schema.Parse(below.JSON()); err != nil {
					t.Errorf("At(%q) of %s: %v", path, text, err)
				}
			}
		}
		if projected, err := all.Project(s.Ordered()); err == nil {
			if _, err := schema.Parse(projected); err != nil {
				t.Errorf("projection %s of %s: %v", projected, text, err)
			}
		}
		s.Restore(t.Context(), []byte(value))
		s.Properties()
		s.Enum()
	})
}

func TestConcurrent(t *testing.T) {
	s := parse(t, `{"properties":{"a":{"$ref":"#"}}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				other := parse(t, `{"properties":{"a":{"type":"object"}},"required":["a"]}`)
				if got := schema.Compatible(s, other); len(got) != 1 {
					t.Errorf("got %v, want one problem", got)
				}
				if _, ok := s.At("a", "a"); !ok {
					t.Error("a.a does not exist")
				}
				if got := s.Restore(t.Context(), []byte(`{"a":{"a":null}}`)); string(got) != `{"a":{"a":null}}` {
					t.Errorf("got %s", got)
				}
				if _, err := schema.For[pair](); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
