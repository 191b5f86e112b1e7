package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

const secret = "sk-very-secret-key"

// embedder returns an embedder of a server.
func embedder(t *testing.T, serve http.HandlerFunc, c openai.Config) llm.Embedder {
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c.Model, c.URL, c.Key = "small", server.URL+c.URL, secret
	c.Retry.Wait = time.Millisecond
	return openai.NewEmbedder(c)
}

func TestEmbed(t *testing.T) {
	server := new(script.Embedder)
	var asked struct {
		Model      string
		Input      []string
		Dimensions int
		Format     *string `json:"encoding_format"`
	}
	var path, key string
	e := embedder(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		path, key = r.URL.Path, r.Header.Get("Authorization")
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		server.ServeHTTP(w, r)
	}, openai.Config{Extra: map[string]any{"dimensions": 3}, URL: "/v1/chat/completions"})
	ctx := llm.WithTable(t.Context(), func(i llm.Info) llm.Spec {
		return llm.Spec{Price: &budget.Price{In: 1000}}
	})
	texts := []string{"a killed run", "bees"}
	got, err := e.Embed(ctx, &llm.EmbedRequest{Texts: texts})
	if err != nil || len(got.Vectors) != 2 || got.Usage.InputTokens != 4 || got.Usage.USD != 0.004 || got.Usage.Estimated {
		t.Fatalf("%+v, %v", got, err)
	}
	if asked.Model != "small" || len(asked.Input) != 2 || asked.Dimensions != 3 || asked.Format != nil || path != "/v1/embeddings" || key != "Bearer "+secret {
		t.Errorf("asked %+v at %s with %q", asked, path, key)
	}
	if q := llm.QuoteEmbed(ctx, e, &llm.EmbedRequest{Texts: texts}); q.Most.Tokens != 5 || q.Most.USD != 0.005 || q.Unpriced != "" {
		t.Errorf("%+v", q)
	}
	if q := llm.QuoteEmbed(t.Context(), e, &llm.EmbedRequest{Texts: texts}); q.Unpriced != "small" {
		t.Errorf("%+v", q)
	}
	if s := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(s, secret) {
		t.Error(s)
	}
}

// Vectors may be in any order, and in base64.
func TestEmbedForms(t *testing.T) {
	raw := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)), math.Float32bits(-2))
	packed := base64.StdEncoding.EncodeToString(raw)
	for answer, want := range map[string]string{
		`{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`: "[[1 2] [3 4]]",
		`{"data":[{"embedding":[1,2]},{"embedding":"` + packed + `"}]}`:          "[[1 2] [1.5 -2]]",
		`{"data":[{"embedding":[1,2]}]}`:                                         "!got 1 vectors for 2 texts",
		`{"data":[{"index":5,"embedding":[1]},{"index":0,"embedding":[1]}]}`:     "!the index 5",
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`:     "!the index 0",
		`{"data":[{"embedding":[1,2]},{"embedding":[1]}]}`:                       "!vector 2 has 1 numbers",
		`{"data":[{"embedding":[]},{"embedding":[]}]}`:                           "!vector 1 has 0 numbers",
		`{"data":[{"embedding":[1]},{"embedding":[1e39]}]}`:                      "!cannot be read",
		`{"data":[{"embedding":[1]},{"embedding":"AAAAf"}]}`:                     "!base64",
		`{"data":[{"embedding":[1]},{"embedding":"AADAfw=="}]}`:                  "!not finite", // NaN
		`{"error":{"message":"no such model"}}`:                                  "!no such model",
		`{}`:                                                                     "!0 vectors",
		`[1]`:                                                                    "!cannot be read",
		``:                                                                       "!cannot be read",
	} {
		e := embedder(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		}, openai.Config{})
		got, err := e.Embed(t.Context(), &llm.EmbedRequest{Texts: []string{"a", "b"}})
		switch reason, fails := strings.CutPrefix(want, "!"); {
		case fails && (err == nil || !strings.Contains(err.Error(), reason) || !errors.As(err, new(*llm.ProtocolError))):
			t.Errorf("%s: %v, want %s", answer, err, reason)
		case !fails && (err != nil || fmt.Sprint(got.Vectors) != want):
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
}

func TestEmbedFailures(t *testing.T) {
	ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} })
	server, fails := new(script.Embedder), 2
	e := embedder(t, func(w http.ResponseWriter, r *http.Request) {
		if fails--; fails >= 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		server.ServeHTTP(w, r)
	}, openai.Config{})
	if got, err := e.Embed(ctx, &llm.EmbedRequest{Texts: []string{"a b"}}); err != nil || got.Usage.USD != 2 {
		t.Errorf("after two refusals: %+v, %v", got, err)
	}

	// A refusal costs nothing, an answer that cannot be used costs its input. Errors have no key.
	for status, usd := range map[int]float64{http.StatusUnauthorized: 0, http.StatusOK: 2} {
		e := embedder(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, secret)
		}, openai.Config{})
		_, err := e.Embed(ctx, &llm.EmbedRequest{Texts: []string{"text"}})
		used, _ := budget.CostOf(err)
		if err == nil || strings.Contains(err.Error(), secret) || used.USD != usd {
			t.Errorf("%d: %v, costs %v", status, err, used.USD)
		}
	}

	for _, texts := range [][]string{nil, {"a", " \n"}} {
		if _, err := e.Embed(ctx, &llm.EmbedRequest{Texts: texts}); err == nil {
			t.Errorf("%q was sent", texts)
		}
	}
	for want, c := range map[string]openai.Config{
		"no Model":                         {URL: "http://h"},
		"an embedder does not support":     {Model: "m", URL: "http://h", Stateful: true},
		"Extra must not set input":         {Model: "m", URL: "http://h", Extra: map[string]any{"input": 1}},
		"no key for https://api.openai.co": {Model: "m"},
	} {
		t.Setenv("OPENAI_API_KEY", "")
		t.Setenv("OPENAI_BASE_URL", "")
		if err := openai.NewEmbedder(c).(llm.Checker).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestEmbedHalves embeds with servers that take few texts at once, and keeps the number.
func TestEmbedHalves(t *testing.T) {
	for name, c := range map[string]struct {
		most, status, first, second int
		said                        string
	}{
		"OpenAI":                    {2048, 400, 1, 1, ""},
		"text-embeddings-inference": {32, 422, 4, 4, `{"error":"batch size %d > maximum allowed batch size 32","error_type":"Validation"}`},
		"DashScope":                 {10, 400, 16, 13, `{"error":{"message":"batch size is invalid, it should not be larger than 10 (got %d)"}}`},
		"a proxy that counts bytes": {48, 413, 3, 2, `payload too large: %d`},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			e := embedder(t, func(w http.ResponseWriter, r *http.Request) {
				var req struct{ Input []string }
				_ = json.NewDecoder(r.Body).Decode(&req)
				asked++
				if n := len(req.Input); n > c.most {
					w.WriteHeader(c.status)
					fmt.Fprintf(w, c.said, n)
					return
				}
				var data []string
				for i, text := range req.Input {
					data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[1,%s]}`, i, text))
				}
				io.WriteString(w, `{"data":[`+strings.Join(data, ",")+`]}`)
			}, openai.Config{})
			texts := make([]string, 96)
			for i := range texts {
				texts[i] = fmt.Sprint(i)
			}
			for i, most := range []int{c.first, c.second} {
				asked = 0
				got, err := e.Embed(t.Context(), &llm.EmbedRequest{Texts: texts})
				if err != nil || asked > most+4 {
					t.Fatalf("time %d: %d requests, %v", i+1, asked, err)
				}
				for j, v := range got.Vectors {
					if v[1] != float32(j) {
						t.Fatalf("vector %d is that of text %v", j, v[1])
					}
				}
			}
		})
	}
	t.Run("one text is refused", func(t *testing.T) {
		e := embedder(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "bad") {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			var req struct{ Input []string }
			_ = json.Unmarshal(body, &req)
			io.WriteString(w, `{"data":[`+strings.TrimSuffix(strings.Repeat(`{"embedding":[1]},`, len(req.Input)), ",")+`]}`)
		}, openai.Config{})
		_, err := e.Embed(t.Context(), &llm.EmbedRequest{Texts: []string{"a", "b", "bad", "c", "d"}})
		if err == nil || !strings.Contains(err.Error(), "text 3 of 5") {
			t.Errorf("%v", err)
		}
	})
}
