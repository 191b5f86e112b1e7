package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/schema"
)

// All matches of a value that backtrack have one budget: many texts, each of which is quick enough, are refused after a second.
func TestManyMatches(t *testing.T) {
	s, err := schema.Parse([]byte(`{"type":"array","items":{"type":"string","pattern":"^(?=a)(a+)+$"}}`))
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, 2000) // together they would take more than a minute
	for i := range texts {
		texts[i] = strings.Repeat("a", 24)
	}
	fits, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(t.Context(), fits); err != nil {
		t.Errorf("texts that fit at once: %v", err)
	}
	for i := range texts {
		texts[i] = strings.Repeat("a", 22) + "b"
	}
	slow, err := json.Marshal(map[string]any{"x": texts})
	if err != nil {
		t.Fatal(err)
	}
	any, err := schema.Parse([]byte(`{"properties":{"x":{"items":{"not":{"pattern":"^(?=a)(a+)+$"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := any.Validate(t.Context(), slow); err == nil || !strings.Contains(err.Error(), "matching") {
		t.Errorf("%v, want the sum of the matches refused", err)
	}
	if took := time.Since(start); took > 30*time.Second { // a budget for each text would be more than a minute
		t.Errorf("it took %v", took)
	}
}
