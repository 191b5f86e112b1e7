package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
)

// rendered renders a message with its media as lines.
func rendered(m llm.Message) string {
	var lines []string
	for _, p := range m.Content {
		if p.Media != nil {
			lines = append(lines, "<"+p.Media.String()+">")
		} else {
			lines = append(lines, p.Text)
		}
	}
	return strings.Join(lines, " ")
}

const pngText = "\x89PNG\r\n\x1a\n"

// TestMedia gives a model inputs whose schemas mark media in several ways.
func TestMedia(t *testing.T) {
	type page struct {
		Scan *llm.Media `json:"scan,omitempty"`
		Raw  []byte     `json:"raw,omitempty"`
	}
	type album struct {
		Prompt string      `json:"prompt,omitempty"`
		Cover  llm.Media   `json:"cover,omitzero"`
		Pages  []page      `json:"pages,omitempty"`
		All    []llm.Media `json:"all,omitempty"`
	}
	png := llm.Media{Type: "image/png", Data: []byte(pngText), Name: "a.png"}
	pdf := llm.Media{Type: "application/pdf", Data: []byte("%PDF-")}
	link := llm.Media{Type: "image/jpeg", URL: "https://test.invalid/a.jpg?signature=1"}
	parse := func(text string) *schema.Schema { return must(schema.Parse([]byte(text))) }
	marked := parse(`{"type":"object","properties":{"n":{"type":"integer"},"scan":{"type":["string","null"],"contentEncoding":"base64","contentMediaType":"image/*"}}}`)
	for _, c := range []struct {
		name  string
		input any
		in    *schema.Schema
		want  string
	}{
		{"one", album{Cover: png}, nil, `<a.png, image/png, 8 bytes> {"cover":"[media 1: a.png, image/png, 8 bytes]"}`},
		{"by URL", album{Cover: link}, nil, `<image/jpeg, https://test.invalid/a.jpg> {"cover":"[media 1: image/jpeg, https://test.invalid/a.jpg]"}`},
		{"beside a prompt", album{Prompt: "What is it?", Cover: png}, nil, `<a.png, image/png, 8 bytes> What is it?`},
		{"several", album{Cover: png, Pages: []page{{Scan: &pdf, Raw: []byte("raw")}}, All: []llm.Media{link, png}}, nil,
			`Media 1: <image/jpeg, https://test.invalid/a.jpg> Media 2: <a.png, image/png, 8 bytes> Media 3: <a.png, image/png, 8 bytes> Media 4: <application/pdf, 5 bytes> ` +
				`{"all":["[media 1: image/jpeg, https://test.invalid/a.jpg]","[media 2: a.png, image/png, 8 bytes]"],"cover":"[media 3: a.png, image/png, 8 bytes]",` +
				`"pages":[{"raw":"cmF3","scan":"[media 4: application/pdf, 5 bytes]"}]}`},
		{"none", album{Prompt: "Hi"}, nil, "Hi"},
		{"marked by a schema", json.RawMessage(`{"n":12345678901234567891,"scan":"iVBORw0KGgo="}`), marked,
			`<image/png, 8 bytes> {"n":12345678901234567891,"scan":"[media 1: image/png, 8 bytes]"}`},
		{"unmarked", json.RawMessage(`{"scan":{"type":"image/png","data":"iVBORw0KGgo="}}`), nil, `{"scan":{"type":"image/png","data":"iVBORw0KGgo="}}`},
		{"another type", json.RawMessage(`{"scan":"JVBERi0="}`), marked, "the media of the input: scan: want media of type image/*"},
		{"empty", json.RawMessage(`{"scan":null}`), marked, `{"scan":null}`},
		{"media without content", album{Cover: llm.Media{Type: "image/png"}}, nil, `the media of the input: cover: media of type "image/png" is empty: set Data or URL`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := script.New(script.Text("Seen."), script.Text("Seen."))
			req := &call.Request{Intent: "see", Input: call.JSON(must(json.Marshal(c.input))), InSchema: c.in}
			if _, ok := c.input.(album); ok {
				req.InSchema = must(schema.For[album]())
			}
			_, err := model.New(call.Metadata{}, model.Config{Model: m}).Invoke(t.Context(), req)
			got := fmt.Sprint(err)
			if err == nil {
				got = rendered(m.Requests()[0].Messages[0])
			}
			if !strings.Contains(got, c.want) || err == nil && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestMediaOfCalls calls with a Go type, with an input whose schema comes from the intent or the capability, and with a judge,
// which sees the same picture.
func TestMediaOfCalls(t *testing.T) {
	type receipt struct {
		Scan llm.Media `json:"scan"`
	}
	in := must(schema.Parse([]byte(`{"type":"object","properties":{"scan":{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}}}`)))
	typed := dag.NewType[receipt]("receipt")
	raw := dag.NewType[json.RawMessage]("raw")
	out := dag.NewType[json.RawMessage]("out")
	for _, c := range []struct {
		name  string
		input dag.Reader[any]
		app   call.Applicator
		in    string
	}{
		{"a Go type", call.From(typed), call.Applicator{}, ""},
		{"the schema of the intent", call.From(raw), call.Applicator{Intents: map[string]call.Intent{"see": {In: "req/scan"}}, Schemas: map[string]*schema.Schema{"req/scan": in}}, ""},
		{"the schema of the capability", call.From(raw), call.Applicator{Schemas: map[string]*schema.Schema{"req/scan": in}}, "req/scan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := script.Func(func(n int, req *llm.Request) script.Answer {
				if n == 0 {
					return script.Text("a receipt")
				}
				return script.Text(`{"score":1}`)
			})
			app := c.app
			app.Registry = call.NewRegistry(
				model.New(call.Metadata{ID: "eye", Intents: []string{"see"}, In: c.in}, model.Config{Model: m}),
				model.New(call.Metadata{ID: "judge", Intents: []string{terms.Grade}}, model.Config{Model: m}))
			app.Policy.Default.Judge = call.Judge{On: new(true)}
			d := must(typed.Append(dag.DAG{}, receipt{llm.Media{Type: "image/png", Data: []byte(pngText)}}))
			d = must(raw.Append(d, json.RawMessage(`{"scan":"iVBORw0KGgo="}`)))
			see := call.New("see", out, call.Spec{Applicator: &app, Intent: "see", Input: c.input})
			if _, err := stone.Run(context.Background(), see, stone.Config{Input: d}); err != nil {
				t.Fatal(err)
			}
			requests := m.Requests()
			if len(requests) != 2 {
				t.Fatalf("%d requests", len(requests))
			}
			for i, req := range requests {
				if got := rendered(req.Messages[0]); !strings.HasPrefix(got, "<image/png, 8 bytes> ") || strings.Contains(got, "iVBORw0KGgo") {
					t.Errorf("request %d: %s", i, got)
				}
			}
		})
	}
}
