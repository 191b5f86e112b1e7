package budget

import (
	"errors"
	"fmt"
)

// A Quote is what something may cost, before it is done.
type Quote struct {
	Least, Most Amount
	// Unpriced names a model whose price is not known: an account that bounds money
	// refuses it.
	Unpriced string
}

// Fixed is the quote of what has a price of its own.
func Fixed(a Amount) Quote { return Quote{Least: a, Most: a} }

// estimate reports whether less than what is reserved may be spent.
func (q Quote) estimate() bool { return q.Least != q.Most }

// UnpricedKind is the kind of the failure of a step that is to be paid from an
// account that bounds money, and that has no price.
const UnpricedKind = "budget/unpriced"

// An UnpricedError says that an account bounds money, and that nobody knows what
// something costs.
type UnpricedError struct {
	Model string
	Part  bool // as in ExhaustedError
}

// Error names the model, and what to do.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("budget over USD needs a price for model %q: add it to :prices in the configuration, or wrap the model in llm.Priced", e.Model)
}

// FailureKind returns UnpricedKind.
func (e *UnpricedError) FailureKind() string { return UnpricedKind }

// EndsRun reports whether the account is that of the whole run.
func (e *UnpricedError) EndsRun() bool { return !e.Part }

// Retryable returns false.
func (e *UnpricedError) Retryable() bool { return false }

// Refused reports whether err says that an account did not pay.
func Refused(err error) bool {
	return errors.As(err, new(*ExhaustedError)) || errors.As(err, new(*UnpricedError))
}
