package openai

import "testing"

func TestMediaByURL(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{`[{"type":"image_url","image_url":{"url":"https://a.example/x"}}]`, "image/*"},
		{`[{"type":"image_url","image_url":{"url":"https://a.example/x.php?file=a.png"}}]`, "image/*"},
		{`[{"type":"input_image","image_url":"https://a.example/x.png?signature=1"}]`, "image/png"},
		{`[{"type":"input_image","image_url":"data:image/gif;base64,AAAA"}]`, "image/gif"},
		{`[{"type":"input_file","file_url":"https://a.example/x.pdf"}]`, "application/pdf"},
		{`[{"type":"input_file","file_url":"https://a.example/x"}]`, "application/octet-stream"},
	} {
		parts, err := content("input", []byte(c.content))
		if err != nil || len(parts) != 1 || parts[0].Media.Type != c.want {
			t.Errorf("%s: %+v, %v; want %s", c.content, parts, err, c.want)
		}
	}
}
