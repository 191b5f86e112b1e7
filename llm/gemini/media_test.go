package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
)

// TestMediaInAnswers reads a picture of an answer, which the metadata does not repeat, and sends it
// again with its signature.
func TestMediaInAnswers(t *testing.T) {
	const first = `{"candidates":[{"content":{"parts":[{"text":"A cat:"},{"inlineData":{"mimeType":"image/png","data":"-_8="},"thoughtSignature":"c2ln"},` +
		`{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thought":true},{"text":" sleeping."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`
	var sent []map[string]any
	url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, raw []byte) {
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Error(err)
		}
		sent = append(sent, body)
		fakeserver.Stream(w, "data: "+first+"\n\n")
	})
	m := gemini.New(gemini.Config{Model: "gemini-3-pro-image", URL: url, Key: "k"})
	req := &llm.Request{Messages: []llm.Message{llm.User("Draw a cat.")}}
	reply, err := llm.Collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Media) != 1 || reply.Media[0].Type != "image/png" || string(reply.Media[0].Data) != "\xfb\xff" || reply.Text != "A cat: sleeping." {
		t.Errorf("text %q, media %v", reply.Text, reply.Media)
	}
	stored, _ := json.Marshal(reply.Message())
	if n := bytes.Count(stored, []byte(`+/8=`)); n != 1 {
		t.Errorf("the picture is stored %d times: %s", n, stored)
	}
	var message llm.Message
	if err := json.Unmarshal(stored, &message); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(*llm.Message)
		want string
	}{
		{"unchanged", func(*llm.Message) {}, `[{"text":"A cat:"},{"inlineData":{"data":"+/8=","mimeType":"image/png"},"thoughtSignature":"c2ln"},` +
			`{"inlineData":{"data":"AAAA","mimeType":"image/png"},"thought":true},{"text":" sleeping."}]`},
		{"without the picture", func(m *llm.Message) { m.Content = m.Content[:1] }, `[{"text":"A cat: sleeping."}]`},
		{"without metadata", func(m *llm.Message) { m.Metadata = nil }, `[{"text":"A cat: sleeping."},{"inlineData":{"data":"+/8=","mimeType":"image/png"}}]`},
	} {
		edited := message
		c.edit(&edited)
		again := &llm.Request{Messages: append(req.Messages[:1:1], edited, llm.User("Another."))}
		if _, err := llm.Collect(t.Context(), m, again); err != nil {
			t.Fatal(err)
		}
		turn := sent[len(sent)-1]["contents"].([]any)[1].(map[string]any)
		if got, _ := json.Marshal(turn["parts"]); string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	reply, err = llm.Collect(t.Context(), gemini.New(gemini.Config{Model: "m", URL: bad(t, `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%"}}]},"finishReason":"STOP"}]}`), Key: "k"}), req)
	if _, ok := errors.AsType[*llm.ProtocolError](err); !ok {
		t.Errorf("with data that is not base64: %v, %v", reply.Media, err)
	}
}

// bad returns the address of a server that streams one event.
func bad(t *testing.T, event string) string {
	return fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		fakeserver.Stream(w, "data: "+event+"\n\n")
	})
}
