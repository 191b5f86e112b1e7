package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/transport"
)

// An Embedder converts texts to vectors, such that related texts have nearby vectors.
//
// Embed returns one vector for each text, in order. All vectors have the same length. An error contains the cost of the request,
// if any; see budget.CostOf. An Embedder must be safe for concurrent use. Info identifies the vectors: vectors of different
// providers or models are never compared.
type Embedder interface {
	Informer
	Embed(ctx context.Context, req *EmbedRequest) (*Embedding, error)
}

// EmbedRequest contains the texts of one request. Providers accept different numbers of texts at once, but every Embedder accepts
// at least 100 short texts.
type EmbedRequest struct {
	Texts []string // none may be blank
	// Query means that the texts are search queries rather than documents. Some models embed queries and documents differently.
	Query bool
}

// Embedding is the answer to an EmbedRequest.
type Embedding struct {
	Vectors [][]float32
	// Usage contains the number of input tokens, and their cost if the model's price is known.
	Usage     budget.Usage
	Model     string // the model that answered; "" if the server does not report it
	RequestID string
}

// Check returns an error if the request has no texts or a blank text, because providers reject these.
func (r *EmbedRequest) Check() error {
	if len(r.Texts) == 0 {
		return errors.New("a request without texts: EmbedRequest.Texts needs at least one")
	}
	for i, text := range r.Texts {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("text %d of %d is blank: leave it out", i+1, len(r.Texts))
		}
	}
	return nil
}

// AsRequest returns a Request that contains the texts as messages. It serves to estimate the number of tokens.
func (r *EmbedRequest) AsRequest() *Request {
	req := &Request{Messages: make([]Message, len(r.Texts))}
	for i, text := range r.Texts {
		req.Messages[i] = User(text)
	}
	return req
}

// Check returns an error unless the Embedding has exactly n vectors, of equal length and consisting of finite numbers.
func (e *Embedding) Check(n int) error {
	if len(e.Vectors) != n {
		return fmt.Errorf("got %d vectors for %d texts", len(e.Vectors), n)
	}
	for i, v := range e.Vectors {
		if len(v) == 0 || len(v) != len(e.Vectors[0]) {
			return fmt.Errorf("vector %d has %d numbers, the first one %d", i+1, len(v), len(e.Vectors[0]))
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("vector %d has a number that is not finite", i+1)
			}
		}
	}
	return nil
}

// SpecOfEmbedder returns the known facts about an Embedder's model; see SpecOf.
func SpecOfEmbedder(ctx context.Context, e Informer) (s Spec) {
	info := e.Info()
	if t, _ := ctx.Value(tableKey{}).(Table); t != nil {
		s = t(info)
	}
	if info.Price != nil {
		s.Price = info.Price
	}
	s.inBatch(ctx)
	return s
}

// specFor is like SpecOfEmbedder, but halves the price if req will be sent in a batch.
func specFor(ctx context.Context, e Informer, req *EmbedRequest) Spec {
	return SpecOfEmbedder(transport.Embeds(ctx, e.Info().Endpoint, req.Query), e)
}

// QuoteEmbed estimates the cost of an embedding request. Only input tokens cost anything. Four bytes of text count as one token.
func QuoteEmbed(ctx context.Context, e Embedder, req *EmbedRequest) budget.Quote {
	in := req.AsRequest().inputTokens()
	spec, amount := specFor(ctx, e, req), budget.Amount{Roundtrips: 1, Tokens: in}
	if spec.Price == nil {
		return budget.Quote{Least: amount, Most: amount, Unpriced: cmp.Or(e.Info().Model, "unnamed")}
	}
	amount.USD = spec.Price.Of(budget.Usage{InputTokens: in})
	return budget.Fixed(amount)
}

// NewEmbedMeter returns a Meter for an embedding request. Such a request has no output tokens.
func NewEmbedMeter(ctx context.Context, e Informer, req *EmbedRequest) *Meter {
	m := &Meter{ctx: ctx, req: req.AsRequest(), counts: budget.From(ctx) != nil}
	if price := specFor(ctx, e, req).Price; price != nil {
		m.price, m.counts = *price, true
	}
	return m
}
