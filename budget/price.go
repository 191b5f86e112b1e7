package budget

import (
	"cmp"
	"context"
)

// A Price is the price of a model's tokens, in USD per million. The zero Price is that of
// a free model.
type Price struct {
	In         float64 `json:"usd-per-mtok-in,omitempty"`
	Out        float64 `json:"usd-per-mtok-out,omitempty"`
	CacheRead  float64 `json:"usd-per-mtok-cache-read,omitempty"`  // of input read from a cache; zero means In
	CacheWrite float64 `json:"usd-per-mtok-cache-write,omitempty"` // of input written to a cache; zero means In
}

// Of returns the cost of the tokens of a usage, in USD.
func (p Price) Of(u Usage) float64 {
	u = u.Sane()
	read := min(u.CacheReadTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-read)
	cost := float64(u.InputTokens-read-written)*p.In +
		float64(read)*cmp.Or(p.CacheRead, p.In) +
		float64(written)*cmp.Or(p.CacheWrite, p.In) +
		float64(u.OutputTokens)*p.Out
	return Usage{USD: cost / 1e6}.Sane().USD
}

// Prices returns the price of a provider's model, and whether it is known.
type Prices func(provider, model string) (Price, bool)

type pricesKey struct{}

// WithPrices returns a context with the prices of models that have none of their own.
func WithPrices(ctx context.Context, p Prices) context.Context {
	return context.WithValue(ctx, pricesKey{}, p)
}

// PriceOf returns the price of a model in the context, and whether it is known.
func PriceOf(ctx context.Context, provider, model string) (Price, bool) {
	p, _ := ctx.Value(pricesKey{}).(Prices)
	if p == nil {
		return Price{}, false
	}
	return p(provider, model)
}
