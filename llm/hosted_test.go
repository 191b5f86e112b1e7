package llm_test

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

var search = llm.Tool{Name: "web_search", Provider: map[string]json.RawMessage{
	"anthropic": json.RawMessage(`{"type":"web_search_20250305","name":"web_search","max_uses":5}`),
	"responses": json.RawMessage(`{"type":"web_search"}`),
	"gemini":    json.RawMessage(`{"google_search":{}}`),
}}

// recorded is a server that answers with a recorded stream, and keeps the tools that it was sent.
func recorded(t *testing.T, file string, sent *[]string) string {
	t.Helper()
	data, err := os.ReadFile(need.Recorded(t, "data/streams/"+file)[0])
	if err != nil {
		t.Fatal(err)
	}
	return fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		var req struct{ Tools json.RawMessage }
		if err := json.Unmarshal(body, &req); err != nil {
			t.Error(err)
		}
		*sent = append(*sent, string(req.Tools))
		fakeserver.Stream(w, string(data))
	})
}

// TestProviderTools asks for the provider's own search in each protocol: the object is sent, what the
// answer cites is read, a search has its price, and what it returned goes into the next turn.
func TestProviderTools(t *testing.T) {
	for _, c := range []struct {
		file, tools string
		model       func(url string) llm.Model
		sources     bool
		searches    bool
	}{
		{"anthropic/web-search.sse", `"web_search_20250305"`, func(url string) llm.Model {
			return anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key"})
		}, true, true},
		{"responses/model-web-search-tool-stream-0.sse", `{"type":"web_search"}`, func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Key: "test-key", Protocol: openai.Responses})
		}, false, true},
		{"responses/openai-include-raw-annotations-streaming-0.sse", `{"type":"web_search"}`, func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Key: "test-key", Protocol: openai.Responses})
		}, true, true},
		{"openai/openrouter-web-citations.sse", `"openrouter:web_search"`, func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Key: "test-key"})
		}, true, false},
	} {
		search := search
		search.Provider = maps.Clone(search.Provider)
		search.Provider["openai"] = json.RawMessage(`{"type":"openrouter:web_search"}`)
		var sent []string
		m := llm.Priced(c.model(recorded(t, c.file, &sent)), budget.Price{Search: 10})
		req := &llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{search, {Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}}
		meter := llm.NewMeter(t.Context(), m, req)
		reply, err := llm.Collect(t.Context(), m, req)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if !strings.Contains(sent[0], c.tools) || !strings.Contains(sent[0], `"f"`) {
			t.Errorf("%s: tools %s", c.file, sent[0])
		}
		if (len(reply.Sources) > 0) != c.sources || (reply.Usage.Searches > 0) != c.searches {
			t.Errorf("%s: %d sources, %d searches", c.file, len(reply.Sources), reply.Usage.Searches)
		}
		for _, s := range reply.Sources {
			if !strings.HasPrefix(s.URL, "http") || c.searches && (s.Title == "" || s.Claim == "") || !strings.Contains(reply.Text, s.Claim) {
				t.Errorf("%s: source %+v", c.file, s)
			}
		}
		if usd := meter.Spent(reply, nil).USD; math.Abs(usd-float64(reply.Usage.Searches)*.01) > 1e-9 {
			t.Errorf("%s: %d searches cost $%v", c.file, reply.Usage.Searches, usd)
		}
		kept, _ := json.Marshal(reply.Message().Metadata)
		if c.searches && !strings.Contains(string(kept), "web_search") {
			t.Errorf("%s: the next turn has %.200s", c.file, kept)
		}
	}
}

// TestGrounding reads what a recorded answer of Gemini cites.
func TestGrounding(t *testing.T) {
	data, err := os.ReadFile(need.Recorded(t, "data/streams/gemini/web-search-tool-1.json")[0])
	if err != nil {
		t.Fatal(err)
	}
	var exchange struct {
		Reply json.RawMessage
	}
	if err := json.Unmarshal(data, &exchange); err != nil {
		t.Fatal(err)
	}
	body := exchange.Reply
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	defer s.Close()
	m := gemini.New(gemini.Config{Model: "m", URL: s.URL, Key: "test-key", NoStream: true})
	reply, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{search}})
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Sources) == 0 {
		t.Fatalf("no sources in %.300s", body)
	}
	for _, s := range reply.Sources {
		if !strings.HasPrefix(s.URL, "http") || s.Claim != "" && !strings.Contains(reply.Text, s.Claim) {
			t.Errorf("source %+v", s)
		}
	}
}

// TestProviderToolsRefused checks that a tool of another provider is refused before anything is sent.
func TestProviderToolsRefused(t *testing.T) {
	m := openai.New(openai.Config{Model: "m", URL: "http://127.0.0.1:1", Key: "test-key", Retry: llm.Retry{Max: -1}})
	_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{search}})
	if err == nil || !strings.Contains(err.Error(), `the tool "web_search" is defined only for another provider (anthropic, gemini, responses)`) {
		t.Error(err)
	}
}
