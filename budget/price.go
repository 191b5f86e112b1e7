package budget

import "cmp"

// A Price is the price of a model: of its tokens, in USD per million, and of its searches. The zero Price belongs to
// a free model.
type Price struct {
	In         float64 `json:"usd-per-mtok-in,omitempty"`
	Out        float64 `json:"usd-per-mtok-out,omitempty"`
	CacheRead  float64 `json:"usd-per-mtok-cache-read,omitempty"`     // of input read from a cache; zero means In
	CacheWrite float64 `json:"usd-per-mtok-cache-write,omitempty"`    // of input written to a cache; zero means In
	CacheHour  float64 `json:"usd-per-mtok-cache-write-1h,omitempty"` // of input written to a cache for an hour; zero means CacheWrite
	Search     float64 `json:"usd-per-1000-searches,omitempty"`       // of the web, by the provider
}

// Hour returns the price of requests that write to the cache for an hour.
func (p Price) Hour() Price {
	p.CacheWrite = cmp.Or(p.CacheHour, p.CacheWrite, p.In)
	return p
}

// Of returns the cost of the used tokens in USD.
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
