package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/schema"
)

// openResponses returns the schemas of the specification of Responses, in which they refer to
// each other, or nil where the specification is not present.
var openResponses = sync.OnceValues(func() (json.RawMessage, error) {
	text, err := os.ReadFile("../../shared/data/openresponses/openapi-2026-04-24.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var doc struct {
		Components struct {
			Schemas json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err == nil {
		err = json.Unmarshal(bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/$defs/")), &doc)
	}
	return doc.Components.Schemas, err
})

// parsed are the schemas that were asked for, by their names.
var parsed sync.Map

func schemaNamed(defs json.RawMessage, name string) (*schema.Schema, error) {
	if s, ok := parsed.Load(name); ok {
		return s.(*schema.Schema), nil
	}
	s, err := schema.Parse(fmt.Appendf(nil, `{"$ref":"#/$defs/%s","$defs":%s}`, name, defs))
	if err == nil {
		parsed.Store(name, s)
	}
	return s, err
}

// conforming compares every body and every event under /v1/responses with the specification
// of Responses, whoever the client is, and every error of the gateway with its form of errors.
func conforming(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	defs, err := openResponses()
	if err != nil {
		t.Fatal(err)
	}
	if defs == nil {
		t.Log("bodies are not compared with the specification of Responses: it is not here")
		return next
	}
	valid := func(r *http.Request, name string, value []byte) {
		s, err := schemaNamed(defs, name)
		if err == nil {
			err = s.Validate(t.Context(), functionsAlone(value))
		}
		if err != nil && t.Context().Err() == nil {
			t.Errorf("%s %s: %s: %v: %s", r.Method, r.URL, name, err, value)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		responses, chat := strings.HasPrefix(r.URL.Path, "/v1/responses"), strings.HasPrefix(r.URL.Path, "/v1/chat") || strings.HasPrefix(r.URL.Path, "/v1/models")
		if !responses && !chat || r.Header.Get("Anthropic-Version") != "" {
			next.ServeHTTP(w, r)
			return
		}
		seen := &seenBody{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		switch body := seen.body.Bytes(); {
		case r.Context().Err() != nil: // cut
		case seen.status != http.StatusOK:
			var e struct{ Error json.RawMessage }
			if err := json.Unmarshal(body, &e); err != nil {
				t.Errorf("%s %s: %d %s", r.Method, r.URL, seen.status, body)
				return
			}
			valid(r, "ErrorPayload", e.Error)
		case chat || r.Method == http.MethodDelete || bytes.Contains(body, []byte(`"custom_tool_call"`)): // not part of the specification
		case strings.HasPrefix(seen.Header().Get("Content-Type"), "text/event-stream"):
			validStream(t, r, body, valid)
		default:
			valid(r, "ResponseResource", body)
		}
	})
}

// functionsAlone leaves out the tools that the specification does not know.
func functionsAlone(text []byte) []byte {
	var value any
	if !bytes.Contains(text, []byte(`"tools":[`)) || json.Unmarshal(text, &value) != nil {
		return text
	}
	within, _ := value.(map[string]any)
	if inner, ok := within["response"].(map[string]any); ok {
		within = inner
	}
	if tools, ok := within["tools"].([]any); ok {
		within["tools"] = slices.DeleteFunc(tools, func(tool any) bool { return tool.(map[string]any)["type"] != "function" })
	}
	text, _ = json.Marshal(value)
	return text
}

// validStream checks the events of a stream: their names, their data, and that their numbers
// grow.
func validStream(t testing.TB, r *http.Request, body []byte, valid func(*http.Request, string, []byte)) {
	last := -1
	for frame := range bytes.SplitSeq(bytes.TrimSpace(body), []byte("\n\n")) {
		if bytes.HasPrefix(frame, []byte(":")) {
			continue
		}
		name, data, _ := bytes.Cut(frame, []byte("\ndata: "))
		var event struct {
			Type   string `json:"type"`
			Number int    `json:"sequence_number"`
		}
		if err := json.Unmarshal(data, &event); err != nil || string(name) != "event: "+event.Type || event.Number <= last {
			t.Errorf("%s %s: after event %d: %v: %s", r.Method, r.URL, last, err, frame)
			return
		}
		last = event.Number
		valid(r, schemaOf(event.Type), data)
	}
}

// schemaOf is the schema name of an event: for "response.output_text.delta" it is "ResponseOutputTextDeltaStreamingEvent".
func schemaOf(event string) string {
	var b strings.Builder
	event = strings.Replace(event, "reasoning_summary_text", "reasoning_summary", 1)
	for _, word := range strings.FieldsFunc(event, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "StreamingEvent"
}

// seenBody keeps what is written.
type seenBody struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (s *seenBody) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *seenBody) Write(p []byte) (int, error) {
	s.body.Write(p)
	return s.ResponseWriter.Write(p)
}

func (s *seenBody) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// complaints collects what a test would fail with.
type complaints struct {
	testing.TB
	n int
}

func (c *complaints) Errorf(string, ...any) { c.n++ }

// The checker finds what is not valid, or it would prove nothing.
func TestConforming(t *testing.T) {
	need.Recorded(t, "data/openresponses/openapi-2026-04-24.json")
	const stream = "text/event-stream"
	for _, tt := range []struct {
		path, kind string
		status     int
		body       string
		want       int
	}{
		{"/v1/responses", "application/json", 200, `{"id":"resp_1","object":"response"}`, 1},
		{"/v1/responses/resp_1", "application/json", 200, ``, 1},
		{"/v1/responses", stream, 200, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1}\n\n", 1},
		{"/v1/responses", stream, 200, "event: x\ndata: {\"type\":\"error\",\"sequence_number\":1}\n\n", 1},
		{"/v1/responses", stream, 200, strings.Repeat("event: response.refusal.done\ndata: {\"type\":\"response.refusal.done\",\"sequence_number\":1,\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"refusal\":\"no\"}\n\n", 2), 1},
		{"/v1/chat/completions", "application/json", 400, `{"error":{"message":"no"}}`, 1},
		{"/v1/models", "application/json", 404, `not found`, 1},
		{"/v1/models", "application/json", 404, `{"error":{"message":"no","type":"t","code":"c","param":null}}`, 0},
		{"/v1/runs", "application/json", 200, `{}`, 0},
	} {
		seen := &complaints{TB: t}
		handler := conforming(seen, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", tt.path, nil))
		if seen.n != tt.want {
			t.Errorf("%s %d %s: %d complaints, want %d", tt.path, tt.status, tt.body, seen.n, tt.want)
		}
	}
}
