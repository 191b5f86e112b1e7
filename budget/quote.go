package budget

import (
	"cmp"
	"fmt"

	"github.com/stonelayer/stone/internal/reasons"
)

// A Quote is the cost of a step, estimated before the step starts.
type Quote struct {
	Least Amount `json:"least,omitzero"`
	Most  Amount `json:"most,omitzero"`
	// Output is the number of output tokens included in Most, and USDPerOutput is the price of one output token. Both are zero if
	// the cost does not depend on the output.
	Output       int     `json:"output,omitempty"`
	USDPerOutput float64 `json:"usd-per-output,omitempty"`
	// Unpriced is the name of a model whose price is unknown, or "". An account that limits money rejects the step if a model is
	// named.
	Unpriced string `json:"unpriced,omitempty"`

	returns bool // whether the unused part of Most is returned to the account
}

// Fixed returns the quote for a step that costs exactly the given amount.
func Fixed(a Amount) Quote { return Quote{Least: a, Most: a} }

// Reserved returns the quote for a step that may spend up to the given amount. The whole amount must be available before the step
// starts. Other steps can wait for the unused part to be returned.
func Reserved(a Amount) Quote { return Quote{Least: a, Most: a, returns: true} }

// estimate reports whether the step may cost less than the reserved amount.
func (q Quote) estimate() bool { return q.returns || q.Least.sane() != q.Most.sane() }

// An UnpricedError reports that an account limits money but the price of a model is unknown.
type UnpricedError struct {
	Model string
	Part  bool // see ExhaustedError.Part
}

// Error returns a message that names the model and says what to do.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("budget over USD needs a price for model %q: add it to :models in .stone/stone.edn, or wrap the model in llm.Priced", e.Model)
}

// FailureKind returns "budget/unpriced".
func (e *UnpricedError) FailureKind() string { return reasons.Unpriced }

// EndsRun reports whether the account belongs to the whole run.
func (e *UnpricedError) EndsRun() bool { return !e.Part }

// Retryable returns false.
func (e *UnpricedError) Retryable() bool { return false }

// A Price is what a model costs, in USD per million tokens and per 1,000 searches. With the zero Price, the model is free.
type Price struct {
	In         float64 `json:"usd-per-mtok-in,omitempty"`
	Out        float64 `json:"usd-per-mtok-out,omitempty"`
	CacheRead  float64 `json:"usd-per-mtok-cache-read,omitempty"`     // the price of input read from a cache; zero means In
	CacheWrite float64 `json:"usd-per-mtok-cache-write,omitempty"`    // the price of input written to a cache; zero means In
	CacheHour  float64 `json:"usd-per-mtok-cache-write-1h,omitempty"` // the price of input written to a cache for an hour; zero means CacheWrite
	Search     float64 `json:"usd-per-1000-searches,omitempty"`       // the price of web searches by the provider
}

// Hour returns a copy of p for requests whose cache writes are kept for an hour: its CacheWrite is p's CacheHour.
func (p Price) Hour() Price {
	p.CacheWrite = cmp.Or(p.CacheHour, p.CacheWrite, p.In)
	return p
}

// Of returns the cost of the tokens in u, in USD, without the cost of searches.
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
