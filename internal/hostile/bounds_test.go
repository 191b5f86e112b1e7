package hostile

import (
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

// A tool server's schema of 75 bytes and a result of 400: before the verdicts of a walk were
// kept, 22 levels took 8 GB and the process with it.
func TestSchemaThatDoubles(t *testing.T) {
	s, err := schema.Parse([]byte(`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const depth = 60
	err = s.Validate(t.Context(), []byte(strings.Repeat(`{"a":`, depth)+"{}"+strings.Repeat("}", depth)))
	invalid, ok := errors.AsType[*schema.ValidationError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if n := len(invalid.Detail()); n > 100_000 {
		t.Errorf("%d bytes of errors", n)
	}
}
