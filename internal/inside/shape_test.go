package inside_test

import (
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone/internal/inside"
)

func TestShape(t *testing.T) {
	const doc = `{"type":"object","properties":{"text":{"type":"string"},"lang":{"type":"string"},"n":{"type":"integer"}},"required":["text","n"]}`
	for _, c := range []struct{ schema, text, data, want string }{
		{`{"type":"string"}`, "x", "", `"x"`},
		{`{"type":"string"}`, "", `"y"`, `"y"`},
		{`{"type":"array"}`, "[1]", "", "[1]"},
		{`{"type":"array"}`, "x", "", `it takes no text: want data of the schema {"type":"array"}`},
		{doc, "x", "", `{"text":"x"}`},
		{doc, "x", `{"n":1}`, `{"n":1,"text":"x"}`},
		{doc, "x", `{"text":"y"}`, `the message has text, and its data also sets "text": set only one of them`},
		{doc, "x", `[1]`, `the data beside the text is not an object`},
		{doc, `{"text":"x","n":1}`, "", `{"text":"x","n":1}`},
		{doc, `{"n":1}`, "", `{"text":"{\"n\":1}"}`},
		{doc, `null`, "", `{"text":"null"}`},
		{doc, "x", `null`, `{"text":"x"}`},
	} {
		s, err := inside.ShapeOf(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		var data json.RawMessage
		if c.data != "" {
			data = json.RawMessage(c.data)
		}
		got, err := s.Read(c.text, data)
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%s with %q and %q: got %s, want %s", c.schema, c.text, c.data, got, c.want)
		}
	}
}
