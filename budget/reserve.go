package budget

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/declared"
)

// A reservation is an amount taken from an account before it is spent. Its methods may be
// called on nil, and only the first call counts.
type reservation struct {
	from     *Account
	took     Amount
	estimate bool
	once     sync.Once
}

// Affords returns nil if the account and all accounts above it can pay the amount now; otherwise, it returns an *ExhaustedError.
// It takes nothing from the accounts.
func (a *Account) Affords(amount Amount) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := a.refused(Fixed(amount)); refused != nil {
		return refused.err
	}
	return nil
}

// reserve takes the maximum cost of a step from the account. The account must have at least the minimum cost left or, while other
// estimates are open, the maximum cost. All running steps together therefore overdraw the account by at most one estimate.
func (a *Account) reserve(q Quote) (*reservation, error) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := a.refused(q); refused != nil {
		return nil, refused.err
	}
	return a.grant(q), nil
}

// await calls take, with the tree locked, as soon as the account can pay the quote. If the open estimates of other draws leave
// too little, await waits until they are settled, unless ctx belongs to a step that itself has an open estimate and would wait
// for itself.
func (a *Account) await(ctx context.Context, q Quote, take func()) error {
	for {
		settled, err := a.try(q, take)
		if settled == nil {
			return err
		}
		if _, holds := declared.Held[Amount](ctx); holds {
			return err
		}
		a.waits(+1)
		select {
		case <-settled:
			a.waits(-1)
		case <-ctx.Done():
			a.waits(-1)
			return Costly(context.Cause(ctx), Usage{}) // nothing was sent
		}
	}
}

func (a *Account) waits(more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting += more
}

// Waiting returns the number of draws that are waiting for the estimates of other draws to be settled, on this account and on all
// accounts that share its limits. If the account is nil, it returns 0.
func (a *Account) Waiting() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// try calls take if the account can pay; otherwise, it returns a refusal. If the account could pay after other estimates are
// settled, try also returns a channel, which is closed when the next estimate is settled.
func (a *Account) try(q Quote, take func()) (settled <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	refused := a.refused(q)
	switch {
	case refused == nil:
		take()
		return nil, nil
	case refused.final:
		return nil, refused.err
	}
	if a.settled == nil {
		a.settled = make(chan struct{})
	}
	return a.settled, refused.err
}

// grant takes the reserved amount. The tree must be locked.
func (a *Account) grant(q Quote) *reservation {
	r := &reservation{from: a, took: q.Most.sane(), estimate: q.estimate()}
	a.take(r.took)
	r.count(+1)
	return r
}

// A refusal is the reason why an account does not pay an amount. It is final if the account would not pay after other estimates
// are settled either.
type refusal struct {
	err   error
	final bool
}

// refused returns the reason why the account does not pay an amount, or nil if it pays. The refusal is final if there are no open
// estimates, or if the limit is on time or round trips, because settling an estimate returns neither.
func (a *Account) refused(q Quote) (r *refusal) {
	now := time.Now()
	least, most := q.Least.sane(), q.Most.sane()
	for up := a; up != nil; up = up.above {
		if q.Unpriced != "" && up.limits.USD != nil {
			return &refusal{&UnpricedError{Model: q.Unpriced, Part: !up.whole()}, true}
		}
		limit := up.exceeded(least, now)
		if limit == "" && up.open > 0 {
			limit = up.exceeded(most, now)
		}
		if limit == "" {
			continue
		}
		why := &refusal{up.exhausted(limit, q), up.open == 0 || limit == "latency-ms" || limit == "max-roundtrips"}
		if why.final {
			return why
		}
		r = why
	}
	return r
}

// exceeded returns the name of the limit that the amount would exceed, or "" if it would exceed none.
func (a *Account) exceeded(amount Amount, now time.Time) string {
	l, s := a.limits, a.spent
	switch {
	case l.Latency != nil && !now.Before(a.opened.Add(max(*l.Latency, 0))):
		return "latency-ms"
	case l.Roundtrips != nil && add(s.Roundtrips, amount.Roundtrips) > max(*l.Roundtrips, 0):
		return "max-roundtrips"
	case l.Tokens != nil && (s.Tokens >= *l.Tokens || add(s.Tokens, amount.Tokens) > *l.Tokens):
		return "max-tokens"
	// Three calls of ten cents must fit into thirty cents, despite rounding.
	case l.USD != nil && s.USD+amount.USD > max(*l.USD, 0)*(1+1e-9):
		return "max-usd"
	}
	return ""
}

// Charge takes an amount that has already been spent, even beyond the limits.
func (a *Account) Charge(amount Amount) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.take(amount.sane())
}

// settle replaces the reserved amount with the amount spent. Reserved round trips are not returned.
func (r *reservation) settle(spent Amount) {
	r.end(func() {
		spent = spent.sane()
		spent.Roundtrips = r.took.Roundtrips
		r.from.giveBack(r.took)
		r.from.take(spent)
	})
}

// cancel returns the whole amount to the account. Use it for a step that has not started.
func (r *reservation) cancel() { r.end(func() { r.from.giveBack(r.took) }) }

// lose replaces the reserved amount with the declared cost of an attempt whose cost is unknown.
func (r *reservation) lose(declared Amount) {
	r.end(func() {
		r.from.giveBack(r.took)
		r.from.take(declared)
		r.from.hold(declared)
	})
}

// end settles the reservation, unless it is already settled, and wakes the waiting draws.
func (r *reservation) end(do func()) {
	if r == nil {
		return
	}
	r.once.Do(func() {
		r.from.mu.Lock()
		defer r.from.mu.Unlock()
		do()
		if !r.estimate {
			return
		}
		r.count(-1)
		if t := r.from.tree; t.settled != nil {
			close(t.settled)
			t.settled = nil
		}
	})
}

// count adds n to the number of open estimates if the reservation is an estimate. The tree must be locked.
func (r *reservation) count(n int) {
	for a := r.from; a != nil && r.estimate; a = a.above {
		a.open += n
	}
}

// take takes the amount from the account and all accounts above it. The tree must be
// locked.
func (a *Account) take(amount Amount) {
	for ; a != nil; a = a.above {
		a.spent.Roundtrips = add(a.spent.Roundtrips, amount.Roundtrips)
		a.spent.Tokens = add(a.spent.Tokens, amount.Tokens)
		a.spent.USD += amount.USD
	}
}

// giveBack undoes take.
func (a *Account) giveBack(amount Amount) {
	for ; a != nil; a = a.above {
		a.spent.Roundtrips -= amount.Roundtrips
		a.spent.Tokens -= amount.Tokens
		a.spent.USD = max(a.spent.USD-amount.USD, 0)
	}
}

// sane returns the amount with negative and invalid numbers replaced by zero, so that a capability's wrong report cannot reduce
// an account's spending.
func (m Amount) sane() Amount {
	if math.IsNaN(m.USD) || m.USD < 0 {
		m.USD = 0
	}
	return Amount{
		Roundtrips: max(m.Roundtrips, 0),
		Tokens:     max(m.Tokens, 0),
		USD:        min(m.USD, math.MaxFloat64/4),
	}
}

// add returns the sum of two numbers that are not negative, or the largest int if the sum is larger.
func add(a, b int) int { return a + min(b, math.MaxInt-a) }

// times returns the product of two numbers that are not negative, or the largest int if the product is larger.
func times(a, n int) int {
	if n > 0 && a > math.MaxInt/n {
		return math.MaxInt
	}
	return a * n
}

// Refund returns an amount to the account. The amount was charged because it might have been spent, but it was not spent.
func (a *Account) Refund(amount Amount) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveBack(amount.sane())
}
