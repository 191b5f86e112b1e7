package llm

import (
	"cmp"
	"context"
	"slices"

	"github.com/stonelayer/stone/budget"
)

// Most returns an upper bound for the cost of a request to m. It does not read the messages. Instead it assumes a prompt that
// fills the model's window, and the longest answer that MaxTokens, the model's limit and the window permit. There is no bound for
// a model without a known price or window.
//
// The bound covers one call of the model. It does not cover requests that the client repeats because an answer broke off. A model
// that calls several models, or calls one model several times, has a method Most that returns its own bound. The method has the
// parameters ctx and req.
func Most(ctx context.Context, m Model, req *Request) (all budget.Bound) {
	switch own := m.(type) {
	case nil:
		return all
	case *fallback:
		for i, one := range own.models {
			all = all.Add(Most(ctx, one, own.request(i, req)))
		}
		return all
	case interface {
		Most(context.Context, *Request) budget.Bound
	}:
		return own.Most(ctx, req)
	}
	return mostOf(ctx, m, m, req)
}

// Most returns the bound of the wrapped model, at p's price unless the wrapped model pays for its answers itself.
func (p *priced) Most(ctx context.Context, req *Request) budget.Bound {
	if InfoOf(p.model).Pays {
		return Most(ctx, p.model, req)
	}
	return mostOf(ctx, p, p.model, req)
}

// mostOf returns the bound of inner, with the name and the price of m, which is inner itself or wraps it.
func mostOf(ctx context.Context, m, inner Model, req *Request) budget.Bound {
	if InfoOf(m).Pays {
		return budget.Unbounded(Name(m, req) + " pays for itself and declares no bound")
	}
	spec, name, longest, times := SpecOf(ctx, m, req), cmp.Or(Name(m, req), "a model without a name"), req.MaxTokens, 0
	if l, ok := inner.(interface{ Longest() int }); ok && l.Longest() > 0 && (longest == 0 || l.Longest() < longest) {
		longest = l.Longest()
	}
	switch times = requests(inner); {
	case times == 0:
		return budget.Unbounded("it is unknown which models answer for " + name)
	case spec.Price == nil:
		return budget.Unbounded("the price of " + name + " is unknown")
	case *spec.Price == budget.Price{}:
		return budget.Bound{}
	case spec.Window <= 0:
		return budget.Unbounded("the window of " + name + " is unknown")
	case spec.Price.Search > 0 && slices.ContainsFunc(req.Tools, func(t Tool) bool { return t.Provider != nil }):
		return budget.Unbounded("it is unknown how often " + name + " searches")
	}
	return budget.AtMost(spec.dearest(req, longest)).Times(times)
}

// requests returns the maximum number of requests that m sends to answer one request, without repetitions because an answer broke
// off. It returns 0 if the number is unknown, as for a Fallback.
func requests(m Model) int {
	switch own := m.(type) {
	case *fallback:
		return 0
	case *priced:
		return requests(own.model)
	case interface{ Asks() int }:
		return own.Asks()
	}
	return 1
}

// limit returns the smallest known limit on the length of an answer, in tokens: longest, the model's limit or its window. It
// returns 0 if none is known.
func (s Spec) limit(longest int) int {
	for _, most := range []int{s.Output, s.Window} {
		if most > 0 && (longest == 0 || most < longest) {
			longest = most
		}
	}
	return longest
}

// dearest returns the cost in USD of a full window, at the highest of the input prices (with or without a cache), and of the
// longest answer.
func (s Spec) dearest(req *Request, longest int) float64 {
	p := s.Price
	in := max(p.In, p.CacheRead, p.CacheWrite)
	if req.Params.CacheTTL != "" {
		in = max(in, p.CacheHour)
	}
	return (float64(s.Window)*in + float64(s.limit(longest))*p.Out) / 1e6
}
