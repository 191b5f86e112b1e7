package parts_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/a2a/internal/parts"
)

const (
	media  = `{"type":"object","properties":{"type":{"type":"string"},"data":{"type":"string","contentEncoding":"base64"},"url":{"type":"string"},"name":{"type":"string"}},"required":["type"]}`
	text   = `{"type":"string","contentEncoding":"base64","contentMediaType":"image/*"}`
	medias = `{"type":"array","items":` + media + `}`
	png    = `{"type":"image/png","data":"iVBORw0KGgo=","name":"a.png"}`
)

// What a schema puts into parts, it takes out of them.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct{ schema, value, rest string }{
		{media, png, ""},
		{medias, "[" + png + "," + png + "]", ""},
		{text, `"iVBORw0KGgo="`, ""},
		{`{"type":"object","properties":{"a":` + media + `,"n":{"type":"integer"}}}`, `{"a":` + png + `,"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		{`{"type":"object","properties":{"a":` + text + `,"b":` + medias + `}}`, `{"a":"iVBORw0KGgo=","b":[` + png + `]}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"iVBORw0KGgo="}`, `{"a":"iVBORw0KGgo="}`},
	} {
		s, err := schema.Parse([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		rest, files, err := parts.Take(json.RawMessage(c.value), s)
		if err != nil || string(rest) != c.rest {
			t.Errorf("%s: the rest is %s, %v, want %s", c.value, rest, err, c.rest)
		}
		back := rest
		if len(files) > 0 {
			back, err = parts.PlaceOf(s).Put(rest, files)
		}
		if err != nil || string(back) != c.value {
			t.Errorf("%s: it comes back as %s, %v", c.value, back, err)
		}
	}
}

func TestRefused(t *testing.T) {
	raw := func(kind string) *sdk.Part { return &sdk.Part{Content: sdk.Raw("x"), MediaType: kind} }
	for _, c := range []struct {
		schema, value string
		files         sdk.ContentParts
		want          string
	}{
		{text, "", sdk.ContentParts{raw("text/plain")}, "a file of type text/plain: want image/*"},
		{text, "", sdk.ContentParts{sdk.NewFileURLPart("https://test.invalid/a.png", "image/png")}, "is not fetched: send its bytes"},
		{media, "", sdk.ContentParts{sdk.NewFileURLPart("file:///etc/passwd", "text/plain")}, "neither http, https nor data"},
		{media, "", sdk.ContentParts{raw("image/png"), raw("image/png")}, "there are 2 files: want one"},
		{media, `{"n":1}`, sdk.ContentParts{raw("image/png")}, "beside the files, which are the whole input"},
		{media, "", sdk.ContentParts{raw("no type")}, `media of type "no type"`},
		{media, "", sdk.ContentParts{{Content: sdk.Raw{}, MediaType: "image/png"}}, "is empty"},
		{`{"type":"object","properties":{"a":` + media + `}}`, `{"a":{}}`, sdk.ContentParts{raw("image/png")}, `there are files, and "a" in the data`},
	} {
		s, err := schema.Parse([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if c.value != "" {
			value = json.RawMessage(c.value)
		}
		if got, err := parts.PlaceOf(s).Put(value, c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v, want %s", c.schema, got, err, c.want)
		}
	}
}
