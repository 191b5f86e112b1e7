package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// embedIntent is the intent of requests for embedding vectors.
const embedIntent = "text/embed"

// embedding returns an applicator whose only capability is the embedder, so that requests for vectors have the same limits and
// budgets as other calls. If the embedder is nil, it returns nil.
func embedding(e llm.Embedder) *call.Applicator {
	if e == nil {
		return nil
	}
	asked := func(req *call.Request) (out *llm.EmbedRequest, err error) {
		out = &llm.EmbedRequest{}
		return out, json.Unmarshal(req.Input, out)
	}
	return &call.Applicator{Registry: call.NewRegistry(call.Capability{
		Metadata: call.Metadata{ID: "model/embedder", Kind: "embedder", Intents: []string{embedIntent}, Needs: []string{effect.Net}},
		Quote: func(ctx context.Context, req *call.Request) budget.Quote {
			texts, err := asked(req)
			if err != nil {
				return budget.Fixed(budget.Amount{Roundtrips: 1})
			}
			return llm.QuoteEmbed(ctx, e, texts)
		},
		Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			texts, err := asked(req)
			if err != nil {
				return nil, err
			}
			got, err := e.Embed(ctx, texts)
			if err != nil {
				used, _ := budget.CostOf(err)
				return &call.Reply{Usage: call.Usage{Usage: used}}, err
			}
			out, err := json.Marshal(got.Vectors)
			return &call.Reply{Out: out, Usage: call.Usage{Usage: got.Usage}}, err
		},
	})}
}

// postEmbeddings replies to a request for vectors in OpenAI's format.
func postEmbeddings(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	if err := protocol.WantType(r, "application/json"); err != nil {
		return err
	}
	app := embedding(c.Settings().Embedder)
	if app == nil {
		const status = http.StatusNotFound
		return &api.Problem{Type: problems.NotFound, Title: http.StatusText(status), Status: status, Detail: "this server has no embedder: {:search {:embedder {:provider …, :model …}}} in its configuration sets one"}
	}
	req, err := openai.ReadEmbedding(r)
	if err != nil {
		return err
	}
	type object = map[string]any
	data, err := json.Marshal(object{"proto": 1, "trace": object{"id": strings.ToLower(rand.Text())}, "task": object{"intent": embedIntent}, "input": object{"texts": req.Texts}})
	if err != nil {
		return err
	}
	resp, err := c.Ask(r, app, data)
	if err != nil || errors.Is(resp.Err, journal.ErrUnavailable) {
		return cmp.Or(err, resp.Err)
	}
	if resp.Err != nil {
		failed := call.AsError(resp.Err)
		return openai.Failed(failed.Type, failed.Message, false)
	}
	var vectors [][]float32
	if err := json.Unmarshal(resp.Reply.Out, &vectors); err != nil {
		return err
	}
	return req.Reply(w, vectors, resp.Reply.Usage.Usage)
}
