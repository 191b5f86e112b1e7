package budget

import (
	"fmt"
	"strconv"

	"github.com/stonelayer/stone/internal/money"
)

// Kind is the failure kind of a step that its budget cannot pay for.
const Kind = "budget/exhausted"

// An ExhaustedError reports that an account cannot pay for a step. Spent, Held, Max and Enough are in the unit of the limit. They
// are zero if unknown, as for a limit on time.
type ExhaustedError struct {
	Limit string // "max-roundtrips", "max-tokens", "max-usd" or "latency-ms"
	Part  bool   // whether the account covers only part of the run; see [Account.Sub]

	Spent float64 // the known spending plus the reservations of running steps
	// Held is the sum of the estimates of lost attempts, which have started but have no known cost. For a Shared budget, it is
	// the sum of the estimates of steps in flight.
	Held float64
	Lost int     // the number of lost attempts
	Max  float64 // the limit
	// Shared is the exhausted Shared budget, or nil if the account of a single run is exhausted. Needs is the estimated cost of
	// the rejected step.
	Shared *Balance
	Needs  float64
	// Enough is a limit that would suffice for the rejected step and the lost attempts. It is zero for a Shared budget.
	Enough float64
}

// Error returns a message that states the spending and, if known, a limit that would suffice.
func (e *ExhaustedError) Error() string {
	if e.Shared != nil {
		return e.shared()
	}
	if e.Limit == "latency-ms" {
		return Kind + ": the time limit set by latency-ms or --max-time has passed"
	}
	if e.Max == 0 && e.Enough == 0 {
		return Kind + ": nothing may be spent within " + e.Limit
	}
	held := ""
	if e.Held > 0 {
		held = fmt.Sprintf(", held for %d lost attempts %s", e.Lost, e.amount(e.Held))
		if e.Lost == 1 {
			held = ", held for 1 lost attempt " + e.amount(e.Held)
		}
	}
	text := fmt.Sprintf("%s: spent %s%s, limit %s", Kind, e.amount(e.Spent), held, e.exact(e.Max))
	if e.Enough == 0 {
		return text
	}
	return fmt.Sprintf("%s: set %s to at least %s", text, e.Limit, e.exact(e.Enough))
}

// amount returns a rounded amount as text, in the unit of the limit.
func (e *ExhaustedError) amount(n float64) string {
	if text := money.USD(n, false); e.Limit == "max-usd" && text != "" {
		return text
	}
	return e.exact(n)
}

func (e *ExhaustedError) exact(n float64) string {
	if e.Limit == "max-usd" {
		return money.Exact(n)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// FailureKind returns Kind.
func (e *ExhaustedError) FailureKind() string { return Kind }

// EndsRun reports whether the account belongs to the whole run. If so, a fan-out does not drop the lane with this error: the run
// fails, unless a Rescue handles the error, and can be resumed.
func (e *ExhaustedError) EndsRun() bool { return !e.Part }

// Retryable returns false, because another attempt could not be paid for either.
func (e *ExhaustedError) Retryable() bool { return false }

// exhausted returns the error for a step that the account cannot pay for.
func (a *Account) exhausted(limit string, q Quote) *ExhaustedError {
	e := &ExhaustedError{Limit: limit, Part: !a.whole()}
	least := 0.0
	switch limit {
	case "max-usd":
		e.Max, e.Spent, e.Held, least = *a.limits.USD, a.spent.USD, a.held.USD, q.Most.sane().USD
	case "max-tokens":
		e.Max, e.Spent, e.Held, least = float64(*a.limits.Tokens), float64(a.spent.Tokens), float64(a.held.Tokens), float64(max(q.Most.Tokens, 1))
	case "max-roundtrips":
		e.Max, e.Spent, least = float64(*a.limits.Roundtrips), float64(a.spent.Roundtrips), float64(max(q.Least.Roundtrips, 1))
	default:
		return e
	}
	e.Max = max(e.Max, 0)
	e.Enough = max(e.Spent+least, e.Max+e.Held)
	if limit == "max-usd" {
		e.Enough = money.Enough(e.Enough)
	}
	e.Spent = max(e.Spent-e.Held, 0)
	if e.Held > 0 {
		e.Lost = a.held.Attempts
	}
	return e
}

// hold adds an attempt with the declared cost, whose actual cost is unknown, to the account and the accounts above it. The tree
// must be locked.
func (a *Account) hold(declared Amount) {
	for ; a != nil; a = a.above {
		a.held = a.held.Start(declared)
	}
}
