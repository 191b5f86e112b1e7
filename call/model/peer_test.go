package model_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// TestPeer asks a model server that others have written, in all protocols.
func TestPeer(t *testing.T) {
	need.Time(t)
	url := peer.Aimock(t, `{"fixtures": [
		{"match": {"userMessage": "plain"}, "response": {"content": "Grüezi 🌟"}, "chunkSize": 3},
		{"match": {"userMessage": "Your answer"}, "response": {"content": "Grüezi again"}},
		{"match": {"userMessage": "cake"}, "response": {"content": "{\"cake\":\"sponge\"}"}},
		{"match": {"userMessage": "plan"}, "response": {"content": "{:nodes [{:op :emit :input 1}]}"}},
		{"match": {"userMessage": "busy"}, "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 2}},
		{"match": {"userMessage": "broken"}, "response": {"error": {"message": "bad request", "type": "invalid_request_error"}, "status": 400}}
	]}`)
	once := llm.Retry{Max: -1}
	for name, m := range map[string]llm.Model{
		"openai":    openai.New(openai.Config{Model: "m", URL: url + "/v1", Key: "k", Retry: once}),
		"responses": openai.New(openai.Config{Protocol: openai.Responses, Model: "m", URL: url + "/v1", Key: "k", Retry: once}),
		"anthropic": anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "k", Retry: once}),
		"gemini":    gemini.New(gemini.Config{Model: "m", URL: url, Key: "k", Retry: once}),
	} {
		c := model.New(call.Metadata{}, model.Config{Model: m, Schema: schemas})
		for _, test := range []struct {
			input    string
			requires call.Requires
			want     string
			after    time.Duration
		}{
			{"plain", call.Requires{OutSchema: "res/text"}, `{"text":"Grüezi 🌟"}`, 0},
			{"cake", call.Requires{OutSchema: "res/cake"}, `{"cake":"sponge"}`, 0},
			{"plain", call.Requires{OutSchema: "res/cake"}, `format/drift: the answer is not JSON`, 0},
			{"plan", call.Requires{Reply: call.Plan}, `{:nodes [{:op :emit :input 1}]}`, 0},
			{"busy", call.Requires{}, `runtime/unavailable: `, 2 * time.Second},
			{"broken", call.Requires{}, `runtime/invoke-failed: `, 0},
		} {
			var r eventtest.Recorder
			ctx := eventtest.Context(t.Context(), &r)
			reply, err := c.Invoke(ctx, &call.Request{
				Input: call.JSON(`{"prompt":"` + test.input + `"}`), Requires: test.requires, Voice: event.At(ctx).Speak("m")})
			got := ""
			var failed *call.Error
			switch {
			case errors.As(err, &failed):
				got = failed.Error()
			case err != nil:
				got = err.Error()
			default:
				got = string(reply.Out) + string(reply.Plan)
			}
			if !strings.HasPrefix(got, test.want) || failed != nil && failed.RetryAfter != test.after {
				t.Errorf("%s %s: %s, want %s after %v", name, test.input, got, test.want, test.after)
			}
			// The peer counts tokens in the protocol of OpenAI only.
			if err == nil && (len(heard(&r)) == 0 || name == "openai" && reply.Usage.OutputTokens == 0) {
				t.Errorf("%s %s: heard %q, usage %+v", name, test.input, heard(&r), reply.Usage)
			}
		}
	}
}
