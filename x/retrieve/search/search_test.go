package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/search"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

func index(t *testing.T, e llm.Embedder) *retrieve.Index {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	x := &retrieve.Index{Store: store, Embedder: e}
	files := fstest.MapFS{
		"guide/run.md":  {Data: []byte("# Runs\n\nA killed run is resumed.\n\n# Budgets\n\nA run has a budget.\n")},
		"secret/run.md": {Data: []byte("A killed run is a secret.\n")},
	}
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestCapability(t *testing.T) {
	e := new(script.Embedder)
	c := search.New(call.Metadata{ID: "docs"}, index(t, e), retrieve.Query{Under: "guide", K: 2})
	ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} })
	for _, test := range []struct{ in, want string }{
		{`"killed run"`, "guide/run.md:3 guide/run.md:7"},
		{`{"text": "budget", "k": 1}`, "guide/run.md:7"},
		{`{"text": "budget", "k": 1, "words": true}`, "guide/run.md:7"},
		{`{"text": "killed run", "k": 50, "under": "../secret"}`, ""},
		{`{"text": "killed run", "under": "guide/run.md", "words": true, "where": {"type": "markdown"}}`, "guide/run.md:3 guide/run.md:7"},
		{`{"text": "killed", "where": {"type": "html"}}`, ""},
		{`{"text": " "}`, "!input/schema-invalid"},
		{`{"txet": "a"}`, "!input/schema-invalid"},
		{`7`, "!input/schema-invalid"},
	} {
		reply, err := c.Invoke(ctx, &call.Request{Input: call.JSON(test.in)})
		var got []string
		if err != nil {
			got = append(got, "!"+string(call.AsError(err).Type))
		} else {
			var a retrieve.Answer
			if err := json.Unmarshal(reply.Out, &a); err != nil {
				t.Fatal(err)
			}
			for i := range a.Hits {
				got = append(got, a.Hits[i].Source())
			}
			if strings.Contains(test.in, `"words"`) != (reply.Usage.USD == 0) {
				t.Errorf("%s costs %v", test.in, reply.Usage.USD)
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.in, got, test.want)
		}
	}
	if q := c.Quote(ctx, &call.Request{Input: call.JSON(`"killed run"`)}); q.Most.USD == 0 {
		t.Errorf("%+v", q)
	}
}

func TestContract(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(t *testing.T) call.Capability {
			return search.New(call.Metadata{ID: "docs"}, index(t, new(script.Embedder)), retrieve.Query{})
		},
		OK: &call.Request{Intent: "docs/search", Input: call.JSON(`{"text":"killed run"}`)},
	})
}

// A call orders the passages anew, in a run that records and pays it.
func TestRerank(t *testing.T) {
	x := index(t, nil)
	var passages []string
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "judge", Intents: []string{"search/rerank"}, Cost: call.Cost{USD: 0.25}},
		func(_ context.Context, in struct {
			Question string   `json:"question"`
			Passages []string `json:"passages"`
		}) (map[string]any, error) {
			passages = in.Passages
			return map[string]any{"order": []int{1, 0}}, nil
		}))}
	x.Rerank = search.Rerank(call.Spec{Applicator: app})
	found := dag.NewType[retrieve.Answer]("found")
	p := stone.New("find", found, func(ctx context.Context, _ dag.DAG) (retrieve.Answer, error) {
		return x.Search(ctx, retrieve.Query{Text: "run budget", Under: "guide", K: 1})
	})
	account := budget.New(budget.Limits{USD: new(1.0)})
	a, err := stone.Produce(budget.With(t.Context(), account), p, found, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(passages) != 2 || len(a.Hits) != 1 || a.Hits[0].Text != passages[1] || account.Spent().USD != 0.25 {
		t.Errorf("%q, %+v, spent %+v", passages, a.Hits, account.Spent())
	}
	x.Rerank = func(context.Context, string, []retrieve.Hit) ([]int, error) { return []int{0, 0}, nil }
	if _, err := x.Search(t.Context(), retrieve.Query{Text: "run"}); err == nil || !strings.Contains(err.Error(), "position 0 of 3") {
		t.Errorf("%v", err)
	}
	failed := errors.New("no")
	x.Rerank = func(context.Context, string, []retrieve.Hit) ([]int, error) { return nil, failed }
	if _, err := x.Search(t.Context(), retrieve.Query{Text: "run"}); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
