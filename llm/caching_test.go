package llm_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// bodyOf returns what a model sends, to whatever server.
func bodyOf(t *testing.T, model func(*http.Client) llm.Model, req *llm.Request) map[string]any {
	t.Helper()
	var body map[string]any
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		return nil, errors.New("sent")
	})}
	for range model(client).Stream(t.Context(), req) {
	}
	return body
}

// TestCacheKey has the provider's own server find the cached prompt of a conversation, and no other server,
// which may refuse a field that it does not know.
func TestCacheKey(t *testing.T) {
	ask := func(conversation string, cache bool) *llm.Request {
		return &llm.Request{Messages: []llm.Message{llm.User("hi")}, Cache: cache, Conversation: conversation, Params: llm.Params{CacheTTL: "24h"}}
	}
	for _, protocol := range []openai.Protocol{openai.ChatCompletions, openai.Responses} {
		at := func(url string) func(*http.Client) llm.Model {
			return func(c *http.Client) llm.Model {
				return openai.New(openai.Config{Model: "m", Protocol: protocol, URL: url, Key: "k", HTTPClient: c, Retry: llm.Retry{Max: -1}})
			}
		}
		t.Run(string(protocol), func(t *testing.T) {
			own := at("https://api.openai.com/v1")
			first, again, other := bodyOf(t, own, ask("run 1", true)), bodyOf(t, own, ask("run 1", true)), bodyOf(t, own, ask("run 2", true))
			key, _ := first["prompt_cache_key"].(string)
			if len(key) != 32 || strings.Contains(key, "run") || again["prompt_cache_key"] != key || other["prompt_cache_key"] == key {
				t.Errorf("the keys are %v, %v and %v", key, again["prompt_cache_key"], other["prompt_cache_key"])
			}
			if first["prompt_cache_retention"] != "24h" {
				t.Errorf("retention %v", first["prompt_cache_retention"])
			}
			for _, body := range []map[string]any{
				bodyOf(t, own, ask("run 1", false)), bodyOf(t, own, ask("", true)), bodyOf(t, at("https://models.example.com/v1"), ask("run 1", true)),
			} {
				if body["prompt_cache_key"] != nil {
					t.Errorf("a key is sent: %v", body)
				}
			}
		})
	}
}

// TestHourInCache writes the prompt to Anthropic's cache for an hour, which has a price of its own.
func TestHourInCache(t *testing.T) {
	var sent string
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(
			`data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":100,"cache_creation_input_tokens":3000,` +
				`"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000}}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":0}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":10}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n"))}, nil
	})}
	m := anthropic.New(anthropic.Config{Model: "m", Key: "k", HTTPClient: client})
	req := &llm.Request{System: "be brief", Messages: []llm.Message{llm.User("hi")}, Cache: true, Params: llm.Params{CacheTTL: "1h"}}
	reply, err := llm.Collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(sent, `"cache_control":{"ttl":"1h","type":"ephemeral"}`); n != 2 || strings.Count(sent, "cache_control") != 2 {
		t.Errorf("%d marks: %s", n, sent)
	}
	if u := reply.Usage; u.CacheWriteTokens != 3000 || u.CacheHourTokens != 2000 || *u.InputTokens != 3100 {
		t.Errorf("usage %+v", u)
	}
	for _, test := range []struct {
		name  string
		price budget.Price
		want  float64 // USD per million
	}{
		{"both prices", budget.Price{In: 3, Out: 15, CacheWrite: 3.75, CacheHour: 6}, 100*3 + 1000*3.75 + 2000*6 + 10*15},
		{"one price", budget.Price{In: 3, Out: 15, CacheWrite: 3.75}, 100*3 + 3000*3.75 + 10*15},
		{"no price of the cache", budget.Price{In: 3, Out: 15}, 3100*3 + 10*15},
		{"the hour alone", budget.Price{In: 3, Out: 15, CacheHour: 6}, 1100*3 + 2000*6 + 10*15},
	} {
		spent := llm.NewMeter(t.Context(), llm.Priced(m, test.price), req).Spent(reply, nil)
		if got := spent.USD * 1e6; got < test.want-1e-6 || got > test.want+1e-6 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	most := func(price budget.Price) float64 { return llm.Quote(t.Context(), llm.Priced(m, price), req).Most.USD }
	if most(budget.Price{In: 3, CacheWrite: 3.75, CacheHour: 6}) != most(budget.Price{In: 3, CacheWrite: 6}) {
		t.Error("the estimate does not know the price of an hour")
	}
	if err := gemini.New(gemini.Config{Model: "m", Key: "k"}).CheckParams(req.Params); err == nil || !strings.Contains(err.Error(), "cache_ttl") {
		t.Errorf("Gemini: %v", err)
	}
}
