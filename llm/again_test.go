package llm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
)

// An attempt is made again as long as nothing of its answer was handed on.
func TestAgain(t *testing.T) {
	const (
		start    = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\n\n"
		ping     = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
		overload = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
		text     = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Stone\"}}\n\n"
		end = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	reply := func(status int, mediaType, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const events, doc = "text/event-stream", "application/json"
	for name, tt := range map[string]struct {
		first http.HandlerFunc
		asked int
	}{
		"overloaded at once":     {reply(200, events, overload), 2},
		"overloaded after pings": {reply(200, events, start+ping+overload), 2},
		"overloaded as JSON":     {reply(200, doc, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), 2},
		"cut before the answer":  {reply(200, events, start+ping), 2},
		"overloaded after text":  {reply(200, events, start+text+overload), 2},
		"cut after text":         {reply(200, events, start+text), 2},
		"429":                    {reply(429, doc, `{"error":{"type":"rate_limit_error"}}`), 2},
		"429 without credit":     {reply(429, doc, `{"error":{"code":"insufficient_quota"}}`), 1},
		"final":                  {reply(503, doc, `{}`, "X-Should-Retry", "false"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked == 1 {
					tt.first(w, r)
					return
				}
				reply(200, events, start+text+end)(w, r)
			}))
			defer server.Close()
			m := anthropic.New(anthropic.Config{Model: "m", URL: server.URL, Key: "k", Retry: llm.Retry{Max: 3, Wait: time.Millisecond}})
			got, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("x")}})
			if asked != tt.asked || (err == nil) != (tt.asked > 1) || got.Text != "Stone" && err == nil {
				t.Errorf("asked %d times, want %d: %q, %v", asked, tt.asked, got.Text, err)
			}
		})
	}
}
