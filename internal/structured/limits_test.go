package structured_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
)

// TestLimits checks that a schema at a provider's published limit is enforced, and that one beyond
// it is not sent.
func TestLimits(t *testing.T) {
	object := func(n int, property string, required bool) string {
		var properties, names []string
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"p%d":%s`, i, property))
			names = append(names, fmt.Sprintf(`"p%d"`, i))
		}
		if !required {
			names = nil
		}
		return `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(names, ",") + `]}`
	}
	text := `{"type":"string"}`
	enum := func(n, length int) string {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf(`"%0*d"`, length, i))
		}
		return object(1, `{"type":"string","enum":[`+strings.Join(values, ",")+`]}`, true)
	}
	deep := func(n int) string {
		return strings.Repeat(`{"type":"object","required":["a"],"properties":{"a":`, n) + text + strings.Repeat("}}", n)
	}
	for _, test := range []struct {
		provider, what string
		most           int
		schema         func(n int) string
	}{
		{"openai", "properties", 5000, func(n int) string { return object(n, text, true) }},
		{"openai", "levels", 10, deep},
		{"openai", "enum values", 1000, func(n int) string { return enum(n, 4) }},
		{"openai", "characters of a long enum", 15_000 / 300, func(n int) string { return enum(300, n) }},
		{"openai", "characters", 119, func(n int) string {
			return object(n, `{"type":"string","enum":["`+strings.Repeat("x", 1000)+`"]}`, true)
		}},
		{"anthropic", "optional parameters", 24, func(n int) string { return object(n, text, false) }},
		{"anthropic", "unions", 16, func(n int) string { return object(n, `{"type":["string","null"]}`, true) }},
	} {
		at := dialects[test.provider].Schema(&llm.Format{Schema: json.RawMessage(test.schema(test.most))})
		if faults := published[test.provider].inspect(at); at == nil || faults != nil {
			t.Errorf("%s: %d %s are not enforced: %v", test.provider, test.most, test.what, faults)
		}
		beyond := test.schema(test.most + 1)
		if got := dialects[test.provider].Schema(&llm.Format{Schema: json.RawMessage(beyond)}); got != nil {
			t.Errorf("%s: %d %s are sent: %v", test.provider, test.most+1, test.what, published[test.provider].inspect(got))
		}
	}
}
