package serve_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
)

// A server without the parts below x names the part for each path that it does not serve, and a server with them does not.
func TestUnlinkedPaths(t *testing.T) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	document.Paths["/mcp"] = map[string]json.RawMessage{"post": nil}
	bare := servetest.Start(t, serve.Config{Journal: memdb.New(t)})
	named := map[string]bool{}
	for path, operations := range document.Paths {
		for method := range operations {
			status, body := send(t, strings.ToUpper(method), bare.URL+strings.NewReplacer("{", "", "}", "").Replace(path))
			switch _, home, _ := strings.Cut(body, "the part of package github.com/stonelayer/stone/"); {
			case strings.Contains(body, "see /openapi.json"):
				t.Errorf("%s %s: %s", method, path, body)
			case home != "":
				home, _, _ = strings.Cut(home, ",")
				named[home] = true
				if _, err := os.Stat("../" + home); err != nil || status != http.StatusNotFound || !strings.Contains(body, "no-such-path") {
					t.Errorf("%s %s: %d %s (%v)", method, path, status, body, err)
				}
			}
		}
	}
	if len(named) != 3 {
		t.Errorf("the server names %v, want 3 packages", named)
	}
	if status, body := send(t, "GET", bare.URL+"/v1/uis"); status != http.StatusNotFound || !strings.Contains(body, "see /openapi.json") {
		t.Errorf("an unknown path: %d %s", status, body)
	}
	all := serveAll(t, serve.Config{Journal: memdb.New(t)})
	if _, body := send(t, "GET", all.URL+"/v1/responses/a/b"); strings.Contains(body, "the part of package") {
		t.Errorf("a linked part: %s", body)
	}
}

func send(t *testing.T, method, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body strings.Builder
	if err := resp.Write(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body.String()
}
