package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/schema"
)

// TestResult reads results as they come over the wire.
func TestResult(t *testing.T) {
	output, err := schema.Parse([]byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const png = `{"type":"image","mimeType":"image/png","data":"AAECAw=="}`
	for _, tt := range []struct {
		name, wire, text, err, meta string
	}{
		{"text", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`, "one\ntwo", "", "null"},
		{"nothing", `{"content":[]}`, "(the tool returned nothing)", "", "null"},
		{"error", `{"content":[{"type":"text","text":"no such\nfile for hunter22"}],"isError":true}`, "", "no such\nfile for [redacted]", "null"},
		{"error without text", `{"content":[],"isError":true}`, "", "the tool failed without a reason", "null"},
		{"error with structure", `{"content":[],"structuredContent":{"code":7},"isError":true}`, "", `{"code":7}`, `{"structured":{"code":7}}`},
		{"image", `{"content":[{"type":"text","text":"look"},` + png + `]}`, "look\n[image, image/png, 4 bytes] <image/png, 4 bytes>", "", "null"},
		{"audio", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAEC"}]}`, "[audio, audio/wav, 3 bytes] <audio/wav, 3 bytes>", "", "null"},
		{"image without a type", `{"content":[{"type":"image","data":"AAEC"}]}`, "[image, , 3 bytes]", "", `{"content":[{"type":"image","mimeType":"","data":"AAEC"}]}`},
		{"too much data", `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("AAAA", 101) + `"},` + png + `]}`,
			"[image, image/png, 303 bytes] (not kept: too much data)\n[image, image/png, 4 bytes] <image/png, 4 bytes>", "", "null"},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///a","name":"a","description":"the first","mimeType":"text/plain"}]}`,
			"[resource file:///a, a, text/plain, the first]", "",
			`{"content":[{"type":"resource_link","mimeType":"text/plain","uri":"file:///a","name":"a","description":"the first"}]}`},
		{"resource with text", `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"body"}}]}`,
			"[resource file:///a]\nbody", "", `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"body"}}]}`},
		{"resource with data", `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"x/y","blob":"AAEC"}}]}`,
			"[resource file:///a, x/y, 3 bytes]", "", `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"x/y","blob":"AAEC"}}]}`},
		{"document", `{"content":[{"type":"resource","resource":{"uri":"file:///b/a.pdf","mimeType":"application/pdf","blob":"AAEC"}}]}`,
			"[resource file:///b/a.pdf, application/pdf, 3 bytes] <a.pdf, application/pdf, 3 bytes>", "", "null"},
		{"structure alone", `{"content":[],"structuredContent":{"n":1,"html":"<b>"}}`, `{"html":"<b>","n":1}`, "", `{"structured":{"html":"<b>","n":1}}`},
		{"structure said twice", `{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}`, `{ "n": 1 }`, "", `{"structured":{"n":1}}`},
		{"structure beside text", `{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`, "one\n{\"n\":1}", "", `{"structured":{"n":1}}`},
		// FastMCP wraps what is no object (python-sdk: func_metadata wrap_output). Right: once.
		{"wrapped text", `{"content":[{"type":"text","text":"one"}],"structuredContent":{"result":"one"}}`, "one", "", `{"structured":{"result":"one"}}`},
		{"wrapped number", `{"content":[{"type":"text","text":"7"}],"structuredContent":{"result":7}}`, "7", "", `{"structured":{"result":7}}`},
		{"wrapped list", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"b\": 1}"}],"structuredContent":{"result":["a",{"b":1}]}}`, "a\n{\"b\": 1}", "", `{"structured":{"result":["a",{"b":1}]}}`},
		{"wrapped list in one text", `{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1,2]}}`, "[1, 2]", "", `{"structured":{"result":[1,2]}}`},
		{"wrapped list, longer", `{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":["a","b"]}}`, "a\n{\"result\":[\"a\",\"b\"]}", "", `{"structured":{"result":["a","b"]}}`},
		{"wrapped empty list", `{"content":[],"structuredContent":{"result":[]}}`, `{"result":[]}`, "", `{"structured":{"result":[]}}`},
		{"exact numbers", `{"content":[{"type":"text","text":"{\"n\":12345678901234567891}"}],"structuredContent":{"n":12345678901234567891}}`,
			`{"n":12345678901234567891}`, "", `{"structured":{"n":12345678901234567000}}`},
		{"rounded numbers", `{"content":[],"structuredContent":{"n":12345678901234567891}}`,
			"{\"n\":12345678901234567000}\n[numbers of 2^53 and more are rounded in this JSON]", "", `{"structured":{"n":12345678901234567000}}`},
		{"against its schema", `{"content":[],"structuredContent":{"n":"1"}}`,
			"{\"n\":\"1\"}\n[the structured content does not fit the schema: n: want integer, got string \"1\"]", "", `{"structured":{"n":"1"}}`},
		{"asks a person", `{"content":[],"resultType":"input_required","inputRequests":{}}`, "", "the tool asks a person for input, which is not supported here; continue without it", "null"},
	} {
		var res sdk.CallToolResult
		if err := json.Unmarshal([]byte(tt.wire), &res); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		secrets, err := redact.New("hunter22")
		if err != nil {
			t.Fatal(err)
		}
		r := reader{maxData: 300, output: output, secrets: secrets}
		if strings.HasPrefix(tt.name, "wrapped") {
			r.output = nil
		}
		got, err := r.result(t.Context(), &res)
		message := ""
		if err != nil {
			message = err.Error()
		}
		for _, m := range got.Media {
			got.Text += " <" + m.String() + ">"
		}
		meta, _ := encode(got.Meta)
		if got.Text != tt.text || message != tt.err || string(meta) != tt.meta {
			t.Errorf("%s: got %q, error %q, meta %s\nwant %q, error %q, meta %s", tt.name, got.Text, message, meta, tt.text, tt.err, tt.meta)
		}
	}
}

func TestOfferedNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, tt := range []struct{ prefix, listed, want string }{
		{"", "read write", "read write"},
		{"fs_", "read write", "fs_read fs_write"},
		{"", "fs.read fs/write", "fs_read fs_write"},
		{"", "a.b a_b", "a_b_2e7336dc a_b"},
		{"", "a.b a/b", "a_b_2e7336dc a_b_c14cddc0"},
		{"", "größe", "gr__e"},
		{"", long + " " + long + "y", strings.Repeat("x", 55) + "_" + "c71bd109 " + strings.Repeat("x", 55) + "_" + "f560a7f0"},
	} {
		got := strings.Join(offeredNames(tt.prefix, listed(tt.listed)), " ")
		if got != tt.want {
			t.Errorf("%q with %q: got %q, want %q", tt.listed, tt.prefix, got, tt.want)
		}
	}
}

func listed(names string) (out []*sdk.Tool) {
	for _, name := range strings.Fields(names) {
		out = append(out, &sdk.Tool{Name: name})
	}
	return out
}

// FuzzOfferedNames checks that providers accept the names, that the names stay distinct, and
// that a valid name is not changed.
func FuzzOfferedNames(f *testing.F) {
	f.Add("", "a.b a_b a/b")
	f.Add("p.", "größe x "+strings.Repeat("y", 100))
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, prefix, names string) {
		if !utf8.ValidString(prefix + names) {
			return
		}
		seen, given := map[string]bool{}, map[string]bool{}
		tools := listed(names)
		for i, name := range offeredNames(prefix, tools) {
			full := prefix + tools[i].Name
			if given[full] {
				return // the server lists it twice
			}
			given[full] = true
			if !valid.MatchString(name) || seen[name] || valid.MatchString(full) && name != full {
				t.Errorf("%q is offered as %q", full, name)
			}
			seen[name] = true
		}
	})
}
