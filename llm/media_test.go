package llm_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

func TestNewMedia(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"a", "\x89PNG\r\n\x1a\nrest", "a, image/png, 12 bytes"},
		{"a.png", "\xff\xd8\xff\xe0", "a.png, image/jpeg, 4 bytes"},
		{"", "RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp, 16 bytes"},
		{"a.wav", "RIFF\x10\x00\x00\x00WAVEfmt ", "a.wav, audio/wav, 16 bytes"},
		{"a.m4a", "\x00\x00\x00\x20ftypM4A ", "a.m4a, audio/mp4, 12 bytes"},
		{"a.mp4", "\x00\x00\x00\x20ftypisom", "a.mp4, video/mp4, 12 bytes"},
		{"a.pdf", "%PDF-1.7" + strings.Repeat(" ", 33_500), "a.pdf, application/pdf, 34 KB"},
		{"a.MP3", "\xff\xfb\x90", "a.MP3, audio/mpeg, 3 bytes"},
		{"a.md", "# A" + strings.Repeat("a", 1_500_000), "a.md, text/markdown, 1.5 MB"},
		{"a.bin", "\x00", "neither content nor name shows the media type: make a Media with its Type"},
		{"a.png", "\x89PN", "neither content nor name shows the media type: make a Media with its Type"},
		{"a.txt", "", `media of type "text/plain" is empty: set Data or URL`},
		{"a.txt", strings.Repeat("a", llm.MaxMedia+1), `media of type "text/plain" has more than 20.0 MB: make it smaller, or pass its URL`},
	} {
		m, err := llm.NewMedia(c.name, []byte(c.data))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = m.String()
		}
		if got != c.want {
			t.Errorf("%q: got %s\nwant %s", c.name, got, c.want)
		}
	}
	if got := (&llm.Media{Type: "image/png", URL: "https://a/b.png?signature=1"}).String(); got != "image/png, https://a/b.png" {
		t.Errorf("by URL: %s", got)
	}
}

func TestReadMedia(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(path, []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := llm.ReadMedia(path); err != nil || m.String() != "a.png, image/png, 8 bytes" {
		t.Errorf("%v, %v", m, err)
	}
	if err := os.Truncate(path, llm.MaxMedia+1); err != nil {
		t.Fatal(err)
	}
	if _, err := llm.ReadMedia(path); err == nil {
		t.Error("a file of any size is read")
	}
	if _, err := llm.ReadMedia(path + ".missing"); !os.IsNotExist(err) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// TestMediaArrive checks that every protocol sends all media of a conversation, each once, and
// those that a result of a tool cannot have after the results.
func TestMediaArrive(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n"
	pictures := []string{png + "asked", png + "first result", png + "second result", png + "said later"}
	media := func(i int) llm.Part {
		return llm.Part{Media: &llm.Media{Type: "image/png", Data: []byte(pictures[i])}}
	}
	req := &llm.Request{Messages: []llm.Message{
		llm.User("See.", media(0).Media),
		{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "draw", Input: json.RawMessage(`{}`)}, {ID: "b", Name: "draw", Input: json.RawMessage(`{}`)}}},
		{Role: llm.RoleTool, CallID: "a", Content: []llm.Part{{Text: "A"}, media(1)}},
		{Role: llm.RoleTool, CallID: "b", Content: []llm.Part{media(2)}},
		llm.User("And?", media(3).Media),
	}}
	for _, c := range []struct {
		name  string
		model func(url string) llm.Model
		moved bool
	}{
		{"chat", func(url string) llm.Model { return openai.New(openai.Config{Model: "m", URL: url, Key: "k"}) }, true},
		{"responses", func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Key: "k", Protocol: openai.Responses})
		}, false},
		{"anthropic", func(url string) llm.Model { return anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "k"}) }, false},
		{"gemini 3", func(url string) llm.Model {
			return gemini.New(gemini.Config{Model: "gemini-3-pro", URL: url, Key: "k"})
		}, false},
		{"gemini 2.5", func(url string) llm.Model {
			return gemini.New(gemini.Config{Model: "gemini-2.5-pro", URL: url, Key: "k"})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body []byte
			url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, sent []byte) {
				body = sent
				http.Error(w, "enough", http.StatusTeapot)
			})
			before, _ := json.Marshal(req)
			if _, err := llm.Collect(t.Context(), c.model(url), req); err == nil {
				t.Fatal("the server was not asked")
			}
			if after, _ := json.Marshal(req); !bytes.Equal(before, after) {
				t.Error("the request was modified")
			}
			last := 0
			for _, p := range pictures {
				at := bytes.Index(body, []byte(base64.StdEncoding.EncodeToString([]byte(p))))
				if at < last || bytes.Count(body, []byte(base64.StdEncoding.EncodeToString([]byte(p)))) != 1 {
					t.Errorf("%s is not sent once and in order:\n%s", p, body)
				}
				last = at
			}
			if got := bytes.Contains(body, []byte("[attachment 2: image/png, 21 bytes; it follows the results]")) && bytes.Contains(body, []byte("Attachment 2:")); got != c.moved {
				t.Errorf("media of results moved after them: %v, want %v:\n%s", got, c.moved, body)
			}
		})
	}
}

// A picture at a URL is passed on, also if nobody knows its format.
func TestPictureByURL(t *testing.T) {
	for _, c := range []struct {
		name  string
		model func(url string) llm.Model
		want  string
	}{
		{"chat", func(url string) llm.Model { return openai.New(openai.Config{Model: "m", URL: url, Key: "k"}) },
			`{"image_url":{"url":"https://a.example/x"},"type":"image_url"}`},
		{"responses", func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Key: "k", Protocol: openai.Responses})
		}, `"image_url":"https://a.example/x","type":"input_image"`},
		{"anthropic", func(url string) llm.Model { return anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "k"}) },
			`{"source":{"type":"url","url":"https://a.example/x"},"type":"image"}`},
		{"gemini", func(url string) llm.Model {
			return gemini.New(gemini.Config{Model: "gemini-3-pro", URL: url, Key: "k"})
		}, `{"fileData":{"fileUri":"https://a.example/x"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body []byte
			url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, sent []byte) {
				body = sent
				http.Error(w, "enough", http.StatusTeapot)
			})
			req := &llm.Request{Messages: []llm.Message{llm.User("See.", &llm.Media{Type: llm.AnyImage, URL: "https://a.example/x"})}}
			if _, err := llm.Collect(t.Context(), c.model(url), req); !strings.Contains(string(body), c.want) {
				t.Errorf("%v: want %s in\n%s", err, c.want, body)
			}
		})
	}
	for _, m := range []llm.Media{{Type: llm.AnyImage, Data: []byte("x")}, {Type: llm.AnyImage}, {Type: "audio/*", URL: "https://a.example/x"}, {Type: "*/*", URL: "https://a.example/x"}} {
		if err := m.Check(); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
}
