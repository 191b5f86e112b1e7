package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
)

// eye is a model that takes pictures alone, and says what it is shown.
type eye struct{ llm.Model }

func (eye) CheckMedia(_ llm.Role, m *llm.Media) error {
	if !strings.HasPrefix(m.Type, "image/") {
		return fmt.Errorf("media of type %q: only pictures", m.Type)
	}
	return m.Check()
}

var sees = eye{script.Func(func(_ int, req *llm.Request) script.Answer {
	var seen []string
	for _, m := range req.Messages {
		if m.Role == llm.RoleUser {
			seen = append(seen, m.Text())
			for _, media := range m.Media() {
				seen = append(seen, fmt.Sprint("[", media, "]"))
			}
		}
	}
	return script.Text(strings.Join(seen, " "))
})}

// The media of a message reach the agent that takes them, over every protocol of chats, and come back with the history. What the model
// cannot be shown is refused before a run starts.
func TestMessageMedia(t *testing.T) {
	files := dag.NewType[[]*llm.Media]("files")
	talks := func(name string, media dag.Reader[[]*llm.Media]) serve.Pipeline {
		return serve.Pipeline{Ashlar: agent.New(name, replied, sees, agent.Config{User: spoken, Conversation: agent.ConversationOf(replied), Media: media})}
	}
	s := serveAll(t, serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{talks("eye", agent.MediaOf(files)), talks("reader", nil)}})
	send := func(method, path, body string) (string, int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), resp.StatusCode
	}
	const png, wav = "data:image/png;base64,iVBORw0KGgo=", "data:audio/wav;base64,UklGRgAAAABXQVZF"
	ui := func(id, message, url string) string {
		return fmt.Sprintf(`{"id":%q,"messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":"what?"},{"type":"file","mediaType":"image/png","filename":"a.png","url":%q}]}]}`, id, message, url)
	}
	agui := `{"threadId":"g","runId":"1","messages":[{"id":"m1","role":"user","content":[{"type":"text","text":"what?"},{"type":"image","source":{"type":"data","mimeType":"image/png","value":"iVBORw0KGgo="}}]}]}`
	chats := func(model string) string {
		return fmt.Sprintf(`{"model":"stone/%s","messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":%q}}]},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":%[2]q}}]}]}`, model, png)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/ui/eye", ui("c", "m1", png), 200, `"delta":"what? [a.png, image/png, 8 bytes]"`},
		{"POST", "/v1/ui/eye", `{"id":"c","messages":[{"id":"m2","role":"user","parts":[{"type":"text","text":"and?"}]}]}`, 200, `"delta":"what? [a.png, image/png, 8 bytes] and?"`},
		{"POST", "/v1/ui/eye", `{"id":"d","messages":[{"id":"m1","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"` + png + `"}]}]}`, 200, `"delta":" [image/png, 8 bytes]"`},
		{"POST", "/v1/ui/eye", ui("e", "m1", wav), 422, `the pipeline eye cannot show its model a.png, audio/wav, 12 bytes: media of type \"audio/wav\": only pictures`},
		{"POST", "/v1/ui/reader", ui("f", "m1", png), 400, "the model accepts only text: leave pictures and files out"},
		{"POST", "/v1/agui/eye", agui, 200, `"delta":"what? [image/png, 8 bytes]"`},
		{"POST", "/v1/agui/reader", strings.Replace(agui, `"g"`, `"h"`, 1), 400, "the model accepts only text: leave pictures and files out"},
		{"POST", "/v1/chat/completions", chats("eye"), 200, `"content":"what? [image/png, 8 bytes]  [image/png, 8 bytes]"`},
		{"POST", "/v1/chat/completions", chats("reader"), 400, "the model accepts only text"},
		{"POST", "/v1/responses", `{"model":"stone/eye","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + png + `"}]}]}`, 200, `"text":" [image/png, 8 bytes]"`},
		{"PUT", "/v1/runs/r", `{"pipeline":"eye","input":{"message":"what?","files":[{"type":"audio/wav","data":"UklGRgAAAABXQVZF"}]}}`, 422, "only pictures"},
		{"PUT", "/v1/runs/r", `{"pipeline":"eye","input":{"message":"what?","files":[null]}}`, 422, "has a null"},
		{"PUT", "/v1/runs/r", `{"pipeline":"eye","input":"what?"}`, 201, `"id":"r"`},
		{"GET", "/v1/pipelines/eye", "", 200, `"files":["image/*"]`},
		{"GET", "/v1/ui/eye/c", "", 200, `{"filename":"a.png","mediaType":"image/png","type":"file","url":"` + png + `"},{"text":"what?","type":"text"}`},
		{"POST", "/v1/agui/eye", `{"threadId":"g","runId":"2","messages":[]}`, 200, `{"source":{"mimeType":"image/png","type":"data","value":"iVBORw0KGgo="},"type":"image"}`},
	} {
		if text, status := send(c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %s: %d\n%.2000s\nwant %d %s", c.method, c.path, c.body, status, text, c.status, c.want)
		}
	}
	if text, _ := send("GET", "/v1/pipelines/reader", ""); strings.Contains(text, `"files"`) || !json.Valid([]byte(text)) {
		t.Error(text)
	}
}
