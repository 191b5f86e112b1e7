package serve_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/search"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// readers are callers with one role each, named by their token; root has no tenant, and the poor one no budget.
type readers struct{}

func (readers) Principal(r *http.Request) (serve.Principal, error) {
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	who := serve.Principal{Name: name, Tenant: name, Roles: []serve.Role{serve.Read, serve.Act}}
	switch name {
	case "watcher":
		who.Roles = []serve.Role{serve.Read}
	case "offline":
		who.Grant = []string{}
	case "root":
		who.Tenant = ""
	case "poor":
		who.Limits = budget.Limits{Roundtrips: new(0)}
	}
	return who, nil
}

// Whoever may ask capabilities searches documents, over JSON and on the page, with the grant and the budget of a request.
func TestSearch(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	x := &retrieve.Index{Store: store, Embedder: new(script.Embedder)}
	files := fstest.MapFS{"guide/run.md": {Data: []byte("# Runs\n\nA killed run is resumed.\n\n# Budgets\n\nA <b>run</b> has a budget.\n")}}
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	x.Rerank = func(_ context.Context, _ string, hits []retrieve.Hit) ([]int, error) {
		hits[len(hits)-1].Relevance = new(0.75)
		return []int{len(hits) - 1}, nil
	}
	app := &call.Applicator{Registry: call.NewRegistry(search.New(call.Metadata{ID: "docs", Intents: []string{"docs/find"}}, x, retrieve.Query{}),
		call.Func(call.Metadata{ID: "other"}, func(context.Context, map[string]any) (int, error) { return 1, nil }))}
	table := func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} }
	h := gatewayServerOf(t, serve.Config{Applicator: app, Grant: []string{"fs/read"}, Access: readers{}, Base: func() context.Context { return llm.WithTable(t.Context(), table) }})
	const form, js = "application/x-www-form-urlencoded", "application/json"
	do := func(who, kind, path, body string) (int, string) {
		accept := kind
		if kind == form {
			accept = "text/html"
		}
		return h.do("POST", path, body, "Authorization", "Bearer "+who, "Content-Type", kind, "Accept", accept)
	}
	for _, c := range []struct {
		who, kind, path, body string
		status                int
		want                  string
	}{
		{"ann", js, "/v1/search", `{"text":"killed run"}`, 200, `^{"capability":"docs","hits":\[{"file":"guide/run.md","from":7,"to":7,"heading":"Budgets","text":"A .*"score":0\.0\d+,.*"vector-rank":2,"fused-rank":2,"relevance":0.75}\],"by":"words and vectors","usage":{.*"usd":2`},
		{"ann", js, "/v1/search", `{"text":"killed run","words":true,"capability":"docs"}`, 200, `"by":"words"`},
		{"ann", js, "/v1/search", `{"text":"no-such","words":true}`, 200, `"hits":\[\]`},
		{"ann", js, "/v1/search", `{"text":" "}`, 422, "question is empty"},
		{"ann", js, "/v1/search", `{"text":"a","k":101}`, 422, "want 1 to 100"},
		{"ann", js, "/v1/search", `{"txt":"a"}`, 400, "txt"},
		{"ann", js, "/v1/search", `{"text":"a","capability":"doc"}`, 404, `no capability .*"doc.*: this server has docs: did you mean docs\?`},
		{"ann", js, "/v1/search", `{"text":"a","capability":"other"}`, 404, "this server has docs"},
		{"watcher", js, "/v1/search", `{"text":"a"}`, 403, "role"},
		{"watcher", form, "/search", `text=a`, 403, "role"},
		{"offline", js, "/v1/search", `{"text":"a"}`, 422, "needs the effect"},
		{"poor", js, "/v1/search", `{"text":"a"}`, 502, "max-roundtrips"},
		{"ann", form, "/search", "text=killed+run&k=1", 200, `(?s)guide/run\.md:7 <small>Budgets.*rank 2 <small>0\.0161.*Reranked</dt><dd>rank 1 · 0\.75.*A &lt;b&gt;run`},
		{"ann", form, "/search", "text=killed&k=0x", 200, "cannot be read: want 1 to 100"},
		{"ann", form, "/search", "text=no-such&words=on", 200, "Nothing was found"},
		{"poor", form, "/search", "text=killed", 200, `role="alert">.*max-roundtrips`},
	} {
		status, text := do(c.who, c.kind, c.path, c.body)
		if status != c.status || !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("%s %s as %s: %d %s, want %d %s", c.path, c.body, c.who, status, text, c.status, c.want)
		}
	}
	for who, want := range map[string]bool{"ann": true, "watcher": false} {
		_, text := h.do("GET", "/", "", "Authorization", "Bearer "+who)
		if strings.Contains(text, `href="/search"`) != want {
			t.Errorf("the menu of %s:\n%s", who, text)
		}
	}
	if status, text := h.do("POST", "/search", "text=a", "Content-Type", form, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("a page of another origin searches: %d %s", status, text)
	}
}

// Searches draw on the budgets of requests for capabilities.
func TestSearchBudgets(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	x := &retrieve.Index{Store: store, Embedder: new(script.Embedder)}
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", fstest.MapFS{"run.md": {Data: []byte("a run")}}), retrieve.Indexed, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	table := func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} }
	h := gatewayServerOf(t, serve.Config{
		Applicator: &call.Applicator{Registry: call.NewRegistry(search.New(call.Metadata{ID: "docs"}, x, retrieve.Query{}))}, Grant: []string{"fs/read"}, Access: readers{},
		Budgets: []budget.Rule{{Shared: budget.Shared{Name: "searches", Limits: budget.Limits{Roundtrips: new(1)}}, Pipeline: "act"}},
		Base:    func() context.Context { return llm.WithTable(t.Context(), table) },
	})
	c := &api.Client{URL: h.URL, Token: "ann"}
	if found, err := c.Search(t.Context(), api.Search{Text: "run"}); err != nil || len(found.Hits) != 1 || found.Hits[0].File != "run.md" {
		t.Errorf("the first search: %+v, %v", found, err)
	}
	var problem *api.Problem
	if found, err := c.Search(t.Context(), api.Search{Text: "run"}); !errors.As(err, &problem) || problem.Status != 502 || !strings.Contains(err.Error(), "searches") {
		t.Errorf("a search without a budget: %+v, %v", found, err)
	}
	all, err := (&api.Client{URL: h.URL, Token: "root"}).Budgets(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "searches" || all[0].Used.Roundtrips != 1 {
		t.Errorf("budgets: %+v, %v", all, err)
	}
}
