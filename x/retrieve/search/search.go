// Package search provides capabilities that search an index of package retrieve. In a configuration, their kind is search:
//
//	{:search {:embedder {:provider :openai, :model "text-embedding-3-small"}}
//	 :capabilities {:docs/search {:cap/kind :search, :k 5, :under "guide"}}}
//
// The input is a question as text, or a [retrieve.Query] in JSON: {"text": "how is a run resumed?", "k": 3}. The answer is a
// [retrieve.Answer]: hits, best first, with file, lines, headings and text. Where and Under in the configuration restrict every
// request.
package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/retrieve"
	_ "github.com/stonelayer/stone/x/retrieve/sqlite" // for indexes in files
)

// Part adds the kind search to a program.
var Part = kinds.Kind{Name: "search", Read: readKind}

func readKind(r *kinds.Reader, m *form.Map, at *kinds.Reached) kinds.Builder {
	at.At = r.Search.Index
	r.Index(m, &at.At)
	at.Provider, at.Model = r.Search.Provider, r.Search.Model
	r.Secrets = append(r.Secrets, r.Search.Secrets...)
	var base retrieve.Query
	m.At("k").Int(&base.K, 1, 100)
	kinds.SomeText(m, "under", &base.Under)
	m.At("words").Bool(&base.Words)
	m.At("where").Entries(func(name string, v form.Value) {
		var text string
		if v.Text(&text) {
			if base.Where == nil {
				base.Where = map[string]string{}
			}
			base.Where[name] = text
		}
	})
	index, embedder, rerank := at.At, r.Search.Embedder, r.Search.Rerank
	r.Reranker(m, &rerank)
	at.Calls = rerank != ""
	return func(meta call.Metadata) (call.Capability, error) {
		like := &retrieve.Index{Embedder: embedder}
		needs := like.Effects(base)
		if redact.IsDatabase(index) { // an index in a database is not a file
			needs = []string{effect.Net}
		}
		meta = meta.Needing(needs...)
		if judge, ok := r.Applicator.Registry.Lookup(rerank); ok {
			meta = meta.Needing(judge.Needs...)
		}
		o := share(r, index)
		return capability(meta, like, base, o.say, func(ctx context.Context, req *call.Request) (*retrieve.Index, func() error, error) {
			store, leave, err := o.open(ctx)
			x := &retrieve.Index{Store: store, Embedder: embedder}
			if rerank != "" {
				x.Rerank = Rerank(call.Spec{Applicator: r.Applicator, Cap: rerank, Effects: req.Effects})
			}
			return x, leave, err
		}), nil
	}
}

// New returns a capability of the kind search that searches the index x. If m.ID is empty, the id is "search". The argument base
// restricts every request; see retrieve.Query.Within. If x.Rerank needs effects, add them to m.Needs.
func New(m call.Metadata, x *retrieve.Index, base retrieve.Query) call.Capability {
	say := func(err error) string { return err.Error() }
	return capability(m.Needing(x.Effects(base)...), x, base, say, func(context.Context, *call.Request) (*retrieve.Index, func() error, error) {
		if x.Store == nil {
			return nil, nil, errors.New("Index.Store is nil")
		}
		return x, func() error { return nil }, nil
	})
}

// capability returns a capability that searches the index that open returns. The function say returns the text of an error in a
// form that remote callers may see.
func capability(m call.Metadata, like *retrieve.Index, base retrieve.Query, say func(error) string, open func(context.Context, *call.Request) (x *retrieve.Index, leave func() error, err error)) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "search"), cmp.Or(m.Kind, "search")
	quote := func(ctx context.Context, req *call.Request) budget.Quote {
		q, err := read(req.Input, base)
		if err != nil {
			return budget.Quote{}
		}
		return like.Quote(ctx, q)
	}
	return call.Capability{Metadata: m, Quote: quote, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		q, err := read(req.Input, base)
		if err == nil {
			err = q.Check()
		}
		if err != nil {
			return nil, &call.Error{Type: reasons.InputInvalid, Where: "input", Message: err.Error(), Cause: err}
		}
		x, leave, err := open(ctx, req)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, &call.Error{Type: reasons.Unavailable, Message: say(err), Cause: err}
		}
		a, err := x.Lookup(ctx, q)
		err = errors.Join(err, leave())
		if err != nil {
			used, _ := budget.CostOf(err)
			return &call.Reply{Usage: call.Usage{Usage: used}}, failure(ctx, err, say)
		}
		out, err := json.Marshal(a)
		return &call.Reply{Type: call.Value, Out: out, Usage: call.Usage{Usage: a.Usage}}, err
	}}
}

// read returns the query in the input of a request, restricted by base.
func read(input call.JSON, base retrieve.Query) (q retrieve.Query, err error) {
	if json.Unmarshal(input, &q.Text) != nil {
		d := json.NewDecoder(bytes.NewReader(input))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return q, fmt.Errorf("the input is neither a text nor a query, such as {\"text\": \"a question\", \"k\": 3}: %w", err)
		}
	}
	return q.Within(base), nil
}

func failure(ctx context.Context, err error, say func(error) string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	typed := (*call.Error)(nil)
	if errors.As(err, &typed) {
		return err
	}
	failed := &call.Error{Type: reasons.InvokeFailed, Message: say(err), Where: "index", Cause: err}
	if errors.As(err, new(*retrieve.EmbedderError)) {
		failed.Type = reasons.Unavailable
	}
	if llm.Retryable(err) {
		failed.Type, failed.Retryable, failed.RetryAfter = reasons.Unavailable, true, llm.RetryAfter(err)
	}
	return failed
}

// reranked is the input of a reranking call.
type reranked struct {
	Question string   `json:"question"`
	Passages []string `json:"passages"`
}

// order is the answer of a reranking call.
type order struct {
	Order  []int     `json:"order"`
	Scores []float64 `json:"scores,omitempty"`
}

var (
	candidates = dag.NewType[reranked]("search/candidates")
	ordered    = dag.NewType[order]("search/order")
)

// Rerank returns a function for retrieve.Index.Rerank that makes the call spec. If spec has no Intent, the intent is
// "search/rerank". The input is {"question": …, "passages": [text, …]}, and the answer is {"order": [2, 0]}: the positions of the
// best passages. The answer may also contain their "scores", in the same order. The function must be called in the body of a run,
// which records and pays for the call.
func Rerank(spec call.Spec) func(ctx context.Context, question string, hits []retrieve.Hit) ([]int, error) {
	spec.Intent = cmp.Or(spec.Intent, terms.Rerank)
	spec.Input = dag.Derive(candidates, func(r reranked) any { return r })
	grant := spec.Effects // effects of the search; if they were stated in the call, a capability that needs fewer would be refused
	spec.Effects = nil
	asked := call.New("rerank", ordered, spec)
	return func(ctx context.Context, question string, hits []retrieve.Hit) ([]int, error) {
		in := reranked{Question: question}
		for _, h := range hits {
			in.Passages = append(in.Passages, h.Text)
		}
		end := stone.In(ctx).RunDynamic(asked, dag.Of(candidates.With(in)), grant)
		if end.InFlight() {
			return nil, end.Cause()
		}
		got, err := ordered.From(end.Within(nil))
		if len(got.Scores) > 0 && len(got.Scores) != len(got.Order) {
			return nil, fmt.Errorf("%d scores for %d passages: want one for each, or none", len(got.Scores), len(got.Order))
		}
		for i, score := range got.Scores {
			if at := got.Order[i]; at >= 0 && at < len(hits) {
				hits[at].Relevance = &score
			}
		}
		return got.Order, err
	}
}
