package structured_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

func TestMedia(t *testing.T) {
	const png = "iVBORw0KGgo="
	own := func(v any, err error) *schema.Schema {
		if err != nil {
			t.Fatal(err)
		}
		return v.(*schema.Schema)
	}
	typed := own(schema.For[struct {
		One  *llm.Media           `json:"one"`
		Map  map[string]llm.Media `json:"map"`
		Raw  []byte               `json:"raw"`
		Text string               `json:"text"`
	}]())
	marked := own(schema.Parse([]byte(`{"type":"object","properties":{
		"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/scan"}]},"b":{"type":"array","items":{"$ref":"#/$defs/scan"}},"c":{"type":"string","contentEncoding":"base64","contentMediaType":"application/pdf"}},
		"$defs":{"scan":{"type":"string","contentEncoding":"base64","contentMediaType":"image/*"}}}`)))
	recursive := own(schema.Parse([]byte(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"},"p":{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}}}}}`)))
	for _, c := range []struct {
		name string
		in   *schema.Schema
		data string
		want string
	}{
		{"no schema", nil, `{"one":{"type":"image/png","data":"` + png + `"}}`, `{"one":{"type":"image/png","data":"` + png + `"}}`},
		{"a pointer, a map, bytes and a text", typed, `{"one":{"type":"image/png","data":"` + png + `"},"map":{"b":{"type":"image/gif","url":"http://a/b"},"a":{"type":"image/png","data":"` + png + `"}},"raw":"` + png + `","text":"` + png + `"}`,
			`{"map":{"a":"[media 1: image/png, 8 bytes]","b":"[media 2: image/gif, http://a/b]"},"one":"[media 3: image/png, 8 bytes]","raw":"` + png + `","text":"` + png + `"} image/png, 8 bytes; image/gif, http://a/b; image/png, 8 bytes`},
		{"characters of HTML", typed, `{"one":{"type":"image/png","data":"` + png + `"},"text":"a < b & c"}`, `{"one":"[media 1: image/png, 8 bytes]","text":"a < b & c"} image/png, 8 bytes`},
		{"null", typed, `{"one":null,"map":null}`, `{"one":null,"map":null}`},
		{"an object that is no media", typed, `{"one":{"type":"image/png","data":"` + png + `","x":1}}`, `{"one":{"type":"image/png","data":"` + png + `","x":1}}`},
		{"without content", typed, `{"one":{"type":"image/png"}}`, `one: media of type "image/png" is empty: set Data or URL`},
		{"references", marked, `{"a":"` + png + `","b":["` + png + `"],"c":"JVBERi0="}`,
			`{"a":"[media 1: image/png, 8 bytes]","b":["[media 2: image/png, 8 bytes]"],"c":"[media 3: application/pdf, 5 bytes]"} image/png, 8 bytes; image/png, 8 bytes; application/pdf, 5 bytes`},
		{"no base64", marked, `{"b":["` + png + `","?"]}`, `b[1]: want base64`},
		{"no picture", marked, `{"a":"JVBERi0="}`, `a: want media of type image/*`},
		{"recursion", recursive, `{"n":{"n":{"p":"` + png + `"}}}`, `{"n":{"n":{"p":"[media 1: image/png, 8 bytes]"}}} image/png, 8 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, media, err := structured.Media([]byte(c.data), c.in)
			got := string(text)
			for i, m := range media {
				got += strings.Repeat(";", min(i, 1)) + " " + m.String()
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.want && !(err != nil && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	deep := strings.Repeat(`{"n":`, 5000) + `{"p":"` + png + `"}` + strings.Repeat("}", 5000)
	if _, media, err := structured.Media([]byte(deep), recursive); err != nil || len(media) != 1 {
		t.Errorf("deep: %d media, %v", len(media), fmt.Sprint(err))
	}
}
