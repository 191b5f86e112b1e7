package answers

import (
	"encoding/json"
	"net/url"
	"testing"
)

func TestResponse(t *testing.T) {
	const review = `{"type":"object","properties":{
		"verdict":{"type":"string","enum":["accept","reject"]},"score":{"type":"integer"},"public":{"type":"boolean"},
		"reasons":{"type":["array","null"],"items":{"type":"string"}},"remark":{"type":"string"}},"required":["verdict","score"]}`
	for _, tt := range []struct {
		name, schema, values, want string
	}{
		{"all fields in the order of the schema", review, "remark=a+%22b%22&verdict=accept&score=3&public=true&reasons=x%0D%0A%0D%0Ay", `{"verdict":"accept","score":3,"public":true,"reasons":["x","y"],"remark":"a \"b\""}`},
		{"without optional ones", review, "verdict=reject&score=0", `{"verdict":"reject","score":0}`},
		{"every digit of a number", review, "verdict=accept&score=12345678901234567890", `{"verdict":"accept","score":12345678901234567890}`},
		{"what is no number is sent as it is, to be refused", review, "verdict=accept&score=1e", `{"verdict":"accept","score":"1e"}`},
		{"a number alone", `{"type":"number"}`, "=1.50", `1.50`},
		{"a text alone", `{"type":"string"}`, "=yes", `"yes"`},
		{"choices that are no texts", `{"enum":[1,2]}`, "=2", `2`},
		{"a choice that reads like JSON", `{"enum":["1","x"]}`, "=1", `"1"`},
		{"a property whose name is none of Go", `{"type":"object","properties":{"a b":{"type":"string"}}}`, "a+b=q", `{"a b":"q"}`},
		{"a nested object is written as JSON", `{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"string"}}}`, "a=%7B%22x%22:1%7D&b=y", `{"a":{"x":1},"b":"y"}`},
		{"what is no JSON is sent as it is, to be refused", `{"type":"object","properties":{"a":{"type":"object"}}}`, "a=%7Bx", `{"a":"{x"}`},
		{"a list of objects is written as JSON", `{"type":"array","items":{"type":"object"}}`, "=x", ``},
		{"a schema with references is asked for whole", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, "a=1", ``},
		{"a schema that is none", `true`, "a=1", ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values, err := url.ParseQuery(tt.values)
			if err != nil {
				t.Fatal(err)
			}
			if got := Of(json.RawMessage(tt.schema)).Response(values.Get); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
