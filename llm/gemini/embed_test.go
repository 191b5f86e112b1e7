package gemini_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/script"
)

func TestEmbed(t *testing.T) {
	scripted := new(script.Embedder)
	var asked struct {
		Requests []struct {
			Model, TaskType      string
			OutputDimensionality int
		}
	}
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		path = r.URL.Path
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		scripted.ServeHTTP(w, r)
	}))
	defer server.Close()
	e := gemini.NewEmbedder(gemini.Config{Model: "gemini-embedding-001", URL: server.URL, Key: llm.NoKey, Extra: map[string]any{"outputDimensionality": 768}})
	for query, task := range map[bool]string{true: "RETRIEVAL_QUERY", false: "RETRIEVAL_DOCUMENT"} {
		got, err := e.Embed(budget.With(t.Context(), budget.New(budget.Limits{})), &llm.EmbedRequest{Texts: []string{"a killed run", "bees"}, Query: query})
		if err != nil || len(got.Vectors) != 2 || got.Usage.InputTokens != 5 || !got.Usage.Estimated {
			t.Fatalf("%+v, %v", got, err)
		}
		if r := asked.Requests; len(r) != 2 || r[1].Model != "models/gemini-embedding-001" || r[1].TaskType != task || r[1].OutputDimensionality != 768 {
			t.Errorf("asked %+v", r)
		}
		if path != "/v1beta/models/gemini-embedding-001:batchEmbedContents" {
			t.Error(path)
		}
		if all := scripted.Requests(); all[len(all)-1].Query != query || all[0].Texts[1] != "bees" {
			t.Errorf("%+v", all)
		}
	}
	if err := gemini.NewEmbedder(gemini.Config{Model: "m", URL: "http://h", Key: llm.NoKey, NoStream: true}).(llm.Checker).Check(); err == nil {
		t.Error("NoStream is accepted")
	}
}
