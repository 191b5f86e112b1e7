package budget

import (
	"fmt"

	"github.com/stonelayer/stone/internal/reasons"
)

// A Quote is the estimated cost of a step before it starts.
type Quote struct {
	Least Amount `json:"least,omitzero"`
	Most  Amount `json:"most,omitzero"`
	// Output is the number of output tokens in Most, and USDPerOutput the price of each. They are
	// zero for a cost that does not depend on the output.
	Output       int     `json:"output,omitempty"`
	USDPerOutput float64 `json:"usd-per-output,omitempty"`
	// Unpriced names a model whose price is not known. An account that limits money
	// rejects it.
	Unpriced string `json:"unpriced,omitempty"`

	returns bool // most of a fixed cost may come back
}

// Fixed is the quote of a step with a fixed cost.
func Fixed(a Amount) Quote { return Quote{Least: a, Most: a} }

// Reserved is the quote of a step that may spend up to an amount, all of which must be there. Other steps wait for what it
// returns.
func Reserved(a Amount) Quote { return Quote{Least: a, Most: a, returns: true} }

// estimate reports whether the step may cost less than is reserved.
func (q Quote) estimate() bool { return q.returns || q.Least.sane() != q.Most.sane() }

// An UnpricedError reports that an account limits money but the price of a model is not
// known.
type UnpricedError struct {
	Model string
	Part  bool // as in ExhaustedError
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
