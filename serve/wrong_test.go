package serve_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
)

// No request of a caller is an error of the server, over any database: on every route, with odd ids, queries
// and bodies.
func TestWrongRequests(t *testing.T) {
	need.Time(t)
	for name, open := range map[string]func(t *testing.T) (journal.Journal, error){
		"sqlite": func(t *testing.T) (journal.Journal, error) {
			return sqlite.Open(filepath.Join(memdir.New(t), "stone.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (journal.Journal, error) {
			return postgres.Open(t.Context(), pgtest.Database(t), postgres.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := j.(interface{ Close() error }); ok {
				t.Cleanup(func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			testWrongRequests(t, j)
		})
	}
}

func testWrongRequests(t *testing.T, j journal.Journal) {
	h := &house{T: t, Steps: servetest.NewSteps()}
	close(h.Gate)
	h.Server = serveAll(t, serve.Config{
		Journal: j, Log: slog.New(h), Applicator: &call.Applicator{Registry: greeters()},
		Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}, {Name: "page", Ashlar: h.Publish()}},
	})
	h.want("PUT", "/v1/runs/done", `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/done/result?wait=30s", "", 200, "done")
	h.want("PUT", "/v1/runs/waits", `{"pipeline":"page","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/waits/result?wait=30s", "", 202, "waiting")
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal([]byte(h.want("GET", "/openapi.json", "", 200, "")), &api); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/questions", "/runs/{id}", "/runs/{id}/diff", "/runs/{id}/steps", "/runs/{id}/nodes/{node}"} {
		api.Paths[path] = map[string]struct {
			Parameters []struct{ Name, In string }
		}{"get": {}}
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		api.Paths[path] = map[string]struct {
			Parameters []struct{ Name, In string }
		}{"post": {}}
	}
	long := strings.Repeat("x", 5000)
	odd := []string{"waits", "none", "\x00", "\xff", "..", "a/b", "-1", "%", long, "\u202e"}
	values := []string{"", "-1", "0", "1e300", "99999999999999999999", "\x00", "\xff", "none", "now", "waits", long, "2026-11-24T00:00:00Z", "9999999h"}
	common := []string{"after", "before", "limit", "state", "label", "pipeline", "wait", "only", "type", "view", "q", "page"}
	bodies := []string{
		"", "{", "[]", "null", "7", `"x"`, "\xff", "{\"pipeline\":\"\x00\"}", `{"pipeline":"none"}`, `{"pipeline":"draft"}`,
		`{"pipeline":"draft","input":{"text":"\u0000"}}`, `{"pipeline":"draft","input":{"text":"\ud800"}}`, `{"pipeline":"draft","input":7}`,
		`{"pipeline":"draft","input":{"text":"x"},"labels":{"a":"\u0000"}}`, `{"pipeline":"draft","input":{"text":"x"},"labels":{"\u0000":"a"}}`,
		`{"pipeline":"draft","input":{"text":"x"},"labels":{"tenant":"b"}}`, `{"pipeline":"draft","input":{"text":"x"},"labels":{"":""}}`,
		`{"pipeline":"draft","input":{"text":"x"},"budget":{"seconds":-1}}`, `{"pipeline":"draft","input":{"text":"x"},"budget":{"seconds":1e300}}`,
		`{"pipeline":"draft","input":{"text":"x"},"budget":{"usd":-1}}`, `{"pipeline":"draft","input":{"text":"x"},"budget":{"usd":1e308,"tokens":99999999999999999999}}`,
		`{"question":"none","response":"x"}`, `{"question":"","response":""}`, `{"question":"\u0000","response":"\u0000"}`, `{"question":"page/publish","response":{},"version":-1}`,
		`{"intent":"none"}`, `{"intent":"text/greet","input":{"name":7}}`, `{"intent":"text/greet","input":{"name":"\u0000"}}`, `{"intent":":","constraints":{"x":"` + long + `"}}`,
		`{"force":true}`, `{"force":7}`, `{"again":["none","\u0000"]}`,
		`{"model":"none","messages":[]}`, `{"model":"draft","messages":[{"role":"user","content":7}],"n":-1}`, `{"model":"draft","input":[{"type":"x"}],"metadata":{"a":"\u0000"}}`,
		strings.Repeat("[", 20000), `{"a":` + strings.Repeat(`{"a":`, 2000),
	}
	h.want("GET", "/v1/runs/done%00", "", 400, "the address is not UTF-8 or has a zero byte")
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	sent := 0
	send := func(method, path, query, body string) {
		u, err := url.Parse(h.URL + path)
		if err != nil {
			return // no client can send it
		}
		u.RawQuery = query
		req, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), u.String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if req.Header.Set("Content-Type", "application/json"); method == "get" {
			req.Header.Set("Accept", "application/json")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s %s?%.80s %.80s: %v", method, path, query, body, err)
			return
		}
		resp.Body.Close() // a stream does not end
		if sent++; resp.StatusCode >= 500 {
			t.Errorf("%s %.80s?%.80s %.80q: %d", method, path, query, body, resp.StatusCode)
		}
	}
	for path, methods := range api.Paths {
		fill := func(id string) string {
			return strings.NewReplacer("{id}", url.PathEscape(id), "{name}", url.PathEscape(id), "{node}", url.PathEscape(id)).Replace(path)
		}
		for method, op := range methods {
			if strings.Contains(path, "{") {
				for _, id := range odd {
					send(method, fill(id), "", "{}")
				}
			}
			names := common
			for _, p := range op.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			if method == "get" {
				for _, name := range names {
					for _, v := range values {
						if name != "wait" || v != "9999999h" && v != "1e300" {
							send(method, fill("done"), url.QueryEscape(name)+"="+url.QueryEscape(v), "")
						}
					}
				}
				send(method, fill("done"), "%zz&a=%&;", "")
				continue
			}
			if method == "delete" {
				continue // of the run that the others need
			}
			for _, body := range bodies {
				send(method, fill("waits"), "", body)
			}
		}
	}
	if t.Logf("%d requests", sent); sent < 1000 {
		t.Errorf("only %d requests were sent", sent)
	}
}
