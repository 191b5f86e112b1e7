package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/schema"
)

// Every route of the API is described, and nothing else is.
func TestOpenAPI(t *testing.T) {
	s, err := New(Config{Journal: &journal.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	left := map[string]bool{}
	for pattern := range operations {
		left[pattern] = true
	}
	gateway := map[string]bool{}
	for _, r := range s.gatewayRoutes() {
		gateway[r.pattern] = true
	}
	for _, r := range s.table() {
		if r.pattern == "GET /openapi.json" || r.pattern == "GET /metrics" || gateway[r.pattern] {
			continue
		}
		if !left[r.pattern] {
			t.Errorf("%s is not described", r.pattern)
		}
		delete(left, r.pattern)
	}
	for pattern := range left {
		t.Errorf("there is no route %s", pattern)
	}
	doc, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, methods := range read.Paths {
		for method, op := range methods {
			if ids[op.OperationID] || op.OperationID == "" {
				t.Errorf("%s %s: the id %q is used twice", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
	for name, raw := range read.Components.Schemas {
		if _, err := schema.Parse(raw); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
		if strings.Contains(string(raw), `"$ref"`) {
			t.Errorf("schema %s refers to a part of itself, which is elsewhere in the document", name)
		}
	}
	for _, ref := range strings.Split(string(text), `"#/components/schemas/`)[1:] {
		if name, _, _ := strings.Cut(ref, `"`); read.Components.Schemas[name] == nil {
			t.Errorf("there is no schema %q", name)
		}
	}
}
