package page

import (
	"encoding/json"
	"net/url"
	"testing"
)

func TestForm(t *testing.T) {
	const review = `{"type":"object","properties":{
		"verdict":{"type":"string","enum":["accept","reject"]},"score":{"type":"integer"},"public":{"type":"boolean"},
		"reasons":{"type":["array","null"],"items":{"type":"string"}},"remark":{"type":"string"}},"required":["verdict","score"]}`
	for _, tt := range []struct {
		name, schema, values, want string
	}{
		{"all fields in the order of the schema", review, "field.remark=a+%22b%22&field.verdict=accept&field.score=3&field.public=true&field.reasons=x%0D%0A%0D%0Ay", `{"verdict":"accept","score":3,"public":true,"reasons":["x","y"],"remark":"a \"b\""}`},
		{"without optional ones", review, "field.verdict=reject&field.score=0", `{"verdict":"reject","score":0}`},
		{"every digit of a number", review, "field.verdict=accept&field.score=12345678901234567890", `{"verdict":"accept","score":12345678901234567890}`},
		{"what is no number is sent as it is, to be refused", review, "field.verdict=accept&field.score=1e", `{"verdict":"accept","score":"1e"}`},
		{"a number alone", `{"type":"number"}`, "field.=1.50", `1.50`},
		{"a text alone", `{"type":"string"}`, "field.=yes", `"yes"`},
		{"choices that are no texts", `{"enum":[1,2]}`, "field.=2", `2`},
		{"a choice that reads like JSON", `{"enum":["1","x"]}`, "field.=1", `"1"`},
		{"a property that has the name of an input", `{"type":"object","properties":{"question":{"type":"string"}}}`, "question=p&field.question=q", `{"question":"q"}`},
		{"nested objects are written as JSON", `{"type":"object","properties":{"a":{"type":"object"}}}`, "field.a=1", ``},
		{"a schema that is none", `true`, "field.a=1", ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values, err := url.ParseQuery(tt.values)
			if err != nil {
				t.Fatal(err)
			}
			if got := formOf(json.RawMessage(tt.schema)).response(values); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{`"a\nb"`, "a\nb"}, {`{"n":12345678901234567890}`, "{\n  \"n\": 12345678901234567890\n}"}, {`1.50`, `1.50`}, {`{`, `{`},
	} {
		if got := readable(tt.content); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.content, got, tt.want)
		}
	}
	left := allowance(5)
	if a, b := left.take("ab€"), left.take("x"); a != "ab€" || b != "" {
		t.Errorf("got %q, %q", a, b)
	}
	if left = 4; left.take("ab€") != "ab" {
		t.Error("a character was cut in two")
	}
}

func TestDifference(t *testing.T) {
	got := ""
	for _, l := range difference("a\nb\nc\nd", "a\nx\ny\nd") {
		got += l.Sign + l.Text + ";"
	}
	if want := " a;-b;-c;+x;+y; d;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
