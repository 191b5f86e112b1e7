package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Queries are the texts to search for.
type Queries struct {
	Queries []string `json:"queries" jsonschema:"three to five, each about another side of the question"`
}

var (
	Asked   = dag.NewType[Queries]("queries")
	QueryOf = dag.NewType[string]("query")
	Found   = dag.NewType[[]Passage]("found")
)

// patience is the time limit of a search.
const patience = 30 * time.Second

// Research plans searches, executes them concurrently, and answers from the results, with sources. Searches are sent to
// SEARCH_URL, a SearXNG server with the format json enabled. A search that fails does not end the run.
func Research(m llm.Model) stone.Ashlar { return research(m, searxng) }

func research(m llm.Model, search func(context.Context, string) ([]Passage, error)) stone.Ashlar {
	return stone.Seq("research",
		agent.New("plan", Asked, m, agent.Config{
			System: agent.Say("You plan web searches that together answer a question."),
			User:   agent.Prompt(Question, func(q string) string { return q }),
		}),
		stone.Map("searches", dag.Derive(Asked, func(q Queries) []string { return q.Queries }), QueryOf,
			stone.Func("search", QueryOf, Found, search, stone.Effects("net"), stone.Timeout(patience)), stone.Quorum(1)),
		stone.Reduce(stone.Func("join", dag.Lanes(Found), Retrieved, func(_ context.Context, all [][]Passage) (out []Passage, err error) {
			seen := map[string]bool{}
			for _, found := range all {
				for _, p := range found {
					if !seen[p.Source] {
						seen[p.Source], out = true, append(out, p)
					}
				}
			}
			return out, nil
		})),
		answer(m),
	)
}

// searxng sends a query to a SearXNG server.
func searxng(ctx context.Context, query string) ([]Passage, error) {
	base := os.Getenv("SEARCH_URL")
	if base == "" {
		return nil, stone.Fail("no-search", "SEARCH_URL is not set: name a SearXNG server, such as http://127.0.0.1:8888")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/search?"+url.Values{"q": {query}, "format": {"json"}}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the search server answered %s", resp.Status)
	}
	var got struct {
		Results []struct{ URL, Title, Content string }
	}
	const most, bytes = 5, 1 << 20
	if err := json.NewDecoder(io.LimitReader(resp.Body, bytes)).Decode(&got); err != nil {
		return nil, fmt.Errorf("the search server: %w", err)
	}
	var out []Passage
	for _, r := range got.Results[:min(most, len(got.Results))] {
		out = append(out, Passage{r.URL, r.Title + "\n" + r.Content})
	}
	return out, nil
}
