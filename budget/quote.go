package budget

import (
	"cmp"
	"fmt"

	"github.com/stonelayer/stone/internal/reasons"
)

// A Quote is the estimated cost of a step before it starts.
type Quote struct {
	Least Amount `json:"least,omitzero"`
	Most  Amount `json:"most,omitzero"`
	// Output is the number of output tokens included in Most, and USDPerOutput is the price of each. Both are zero if the cost
	// does not depend on the output.
	Output       int     `json:"output,omitempty"`
	USDPerOutput float64 `json:"usd-per-output,omitempty"`
	// Unpriced names a model whose price is unknown. An account that limits money rejects such a step.
	Unpriced string `json:"unpriced,omitempty"`

	returns bool // whether a part of Most may be returned
}

// Fixed returns the quote for a step with a fixed cost.
func Fixed(a Amount) Quote { return Quote{Least: a, Most: a} }

// Reserved returns the quote for a step that may spend up to an amount, all of which must be available. Other steps wait for the
// part that is not used.
func Reserved(a Amount) Quote { return Quote{Least: a, Most: a, returns: true} }

// estimate reports whether the step may cost less than its reservation.
func (q Quote) estimate() bool { return q.returns || q.Least.sane() != q.Most.sane() }

// An UnpricedError reports that an account limits money but the price of a model is unknown.
type UnpricedError struct {
	Model string
	Part  bool // see ExhaustedError.Part
}

// Error names the model and says what to do.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("budget over USD needs a price for model %q: add it to :models in .stone/stone.edn, or wrap the model in llm.Priced", e.Model)
}

// FailureKind returns "budget/unpriced".
func (e *UnpricedError) FailureKind() string { return reasons.Unpriced }

// EndsRun reports whether the account belongs to the whole run.
func (e *UnpricedError) EndsRun() bool { return !e.Part }

// Retryable returns false.
func (e *UnpricedError) Retryable() bool { return false }

// A Price is a model's price, in USD per million tokens and per 1,000 searches. The zero Price is the price of a free model.
type Price struct {
	In         float64 `json:"usd-per-mtok-in,omitempty"`
	Out        float64 `json:"usd-per-mtok-out,omitempty"`
	CacheRead  float64 `json:"usd-per-mtok-cache-read,omitempty"`     // the price of input read from a cache; zero means In
	CacheWrite float64 `json:"usd-per-mtok-cache-write,omitempty"`    // the price of input written to a cache; zero means In
	CacheHour  float64 `json:"usd-per-mtok-cache-write-1h,omitempty"` // the price of input written to a cache for an hour; zero means CacheWrite
	Search     float64 `json:"usd-per-1000-searches,omitempty"`       // the price of web searches by the provider
}

// Hour returns the price for requests whose cache writes are kept for an hour.
func (p Price) Hour() Price {
	p.CacheWrite = cmp.Or(p.CacheHour, p.CacheWrite, p.In)
	return p
}

// Of returns the cost of the usage's tokens in USD. It does not include searches.
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
