package llm_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// TestRecordedMedia sends the media of recorded requests, which the servers have accepted, and checks that the parts equal the
// recording's.
func TestRecordedMedia(t *testing.T) {
	for protocol, newModel := range map[string]func(url string) llm.Model{
		"responses": func(url string) llm.Model {
			return openai.New(openai.Config{Model: "gpt-4o", URL: url, Key: "k", Protocol: openai.Responses})
		},
		"gemini": func(url string) llm.Model {
			return gemini.New(gemini.Config{Model: "gemini-2.5-flash", URL: url, Key: "k"})
		},
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", "shared", "data", "streams", protocol, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var recorded struct{ Request json.RawMessage }
			if err := json.Unmarshal(data, &recorded); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			want := mediaParts(t, recorded.Request)
			if len(want) == 0 {
				continue
			}
			found++
			t.Run(protocol+"/"+filepath.Base(file), func(t *testing.T) {
				var m llm.Message
				m.Role = llm.RoleUser
				for _, p := range want {
					m.Content = append(m.Content, llm.Part{Media: mediaOfPart(t, p)})
				}
				var sent []byte
				url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
					sent = body
					http.Error(w, "enough", http.StatusTeapot)
				})
				if _, err := llm.Collect(t.Context(), newModel(url), &llm.Request{Messages: []llm.Message{m}}); sent == nil {
					t.Fatal(err)
				}
				if got := mediaParts(t, sent); !reflect.DeepEqual(got, want) {
					t.Errorf("got  %.500v\nwant %.500v", got, want)
				}
			})
		}
		if len(files) > 0 && found == 0 {
			t.Errorf("%s: no recording has media", protocol)
		}
	}
}

// mediaParts returns the parts of a request with media, in one spelling.
func mediaParts(t *testing.T, request []byte) (parts []map[string]string) {
	t.Helper()
	type object = map[string]json.RawMessage
	var body struct {
		Input, Contents []struct {
			Content json.RawMessage
			Parts   []object
		}
	}
	if json.Unmarshal(request, &body) != nil { // an input that is a string
		return nil
	}
	text := func(o object, names ...string) (s string) {
		for _, name := range names {
			if raw := o[name]; raw != nil {
				if err := json.Unmarshal(raw, &s); err != nil {
					t.Fatal(err)
				}
			}
		}
		return s
	}
	for _, turn := range append(body.Input, body.Contents...) {
		var content []object
		if json.Unmarshal(turn.Content, &content) == nil {
			for _, o := range content {
				if kind := text(o, "type"); kind == "input_image" || kind == "input_file" {
					parts = append(parts, map[string]string{"type": kind, "image_url": text(o, "image_url"), "file_data": text(o, "file_data"), "file_url": text(o, "file_url"), "filename": text(o, "filename")})
				}
			}
		}
		for _, o := range turn.Parts {
			for _, kind := range []string{"inlineData", "fileData"} {
				var in object
				if json.Unmarshal(o[kind], &in) == nil {
					data := strings.NewReplacer("-", "+", "_", "/").Replace(text(in, "data"))
					parts = append(parts, map[string]string{"type": kind, "media": text(in, "mimeType", "mime_type"), "data": data, "uri": text(in, "fileUri", "file_uri")})
				}
			}
		}
	}
	return parts
}

// mediaOfPart makes the media of a part.
func mediaOfPart(t *testing.T, p map[string]string) *llm.Media {
	t.Helper()
	m := &llm.Media{Type: p["media"], URL: p["uri"], Name: p["filename"]}
	data := p["data"]
	switch url := p["image_url"] + p["file_data"] + p["file_url"]; {
	case p["media"] != "":
	case strings.HasPrefix(url, "data:"):
		head, body, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		m.Type, data = head, body
	case p["type"] == "input_image":
		m.Type, m.URL = "image/jpeg", url
	default:
		m.Type, m.URL = "application/pdf", url
	}
	var err error
	if m.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		t.Fatal(err)
	}
	return m
}
