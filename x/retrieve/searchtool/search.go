// Package searchtool provides an agent tool that searches an index of package retrieve.
package searchtool

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/retrieve"
)

type input struct {
	Query string `json:"query" jsonschema:"what to look for: a question, or words that the passage has"`
	K     int    `json:"k,omitempty" jsonschema:"how many passages to return, at most 20; 5 without it"`
}

// Tool returns the tool search_documents, which searches the index. Its result contains passages with their files and lines,
// which the model can cite. The argument base restricts every call; see retrieve.Query.Within. The costs of the questions'
// vectors are charged to the account of the run.
func Tool(x *retrieve.Index, base retrieve.Query) agent.Middleware {
	return tool.Func("search_documents", "Searches documents for passages about a question. Each passage has its source: the file and its lines.",
		func(ctx context.Context, in input) (agent.Result, error) {
			q := retrieve.Query{Text: in.Query, K: in.K}
			if q.K <= 0 {
				q.K = 5
			}
			q.K = min(q.K, 20)
			a, err := x.Search(ctx, q.Within(base))
			if err != nil {
				return agent.Result{}, err
			}
			return shown(&a), nil
		}, tool.Parallel(), tool.Effects(x.Effects(base)...))
}

// shown formats an answer for the model.
func shown(a *retrieve.Answer) agent.Result {
	if len(a.Hits) == 0 {
		return agent.Result{Text: "No passage was found. Try other words."}
	}
	var text strings.Builder
	var sources []string
	for i := range a.Hits {
		h := &a.Hits[i]
		if i > 0 {
			text.WriteString("\n\n")
		}
		fmt.Fprintf(&text, "[%d] %s", i+1, h.Source())
		if h.Heading != "" {
			fmt.Fprintf(&text, " (%s)", h.Heading)
		}
		fmt.Fprintf(&text, "\n%s", h.Text)
		sources = append(sources, h.Source())
	}
	return agent.Result{Text: text.String(), Meta: map[string]any{"sources": sources, "by": a.By}}
}
