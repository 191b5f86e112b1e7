package budget

import (
	"context"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/bounds"
)

// Limits limits the spending of an Account. A nil field means unlimited, and 0 or less means that nothing may be spent: new(2.0)
// means two dollars, and new(0.0) means none. In JSON, the members are max-roundtrips, max-tokens, max-usd and latency-ms; a
// missing member means unlimited.
type Limits struct {
	Roundtrips *int           `json:"max-roundtrips,omitempty"` // the number of invocations of capabilities and of turns of agents
	Tokens     *int           `json:"max-tokens,omitempty"`     // input and output tokens
	USD        *float64       `json:"max-usd,omitempty"`
	Latency    *time.Duration `json:"-"` // the time since the account was opened
}

// An Amount is what has been or will be spent: round trips, tokens and money. Negative fields count as zero.
type Amount struct {
	Roundtrips int     `json:"roundtrips,omitempty"`
	Tokens     int     `json:"tokens,omitempty"`
	USD        float64 `json:"usd,omitempty"`
}

// Add returns the sum.
func (m Amount) Add(n Amount) Amount {
	m, n = m.sane(), n.sane()
	return Amount{add(m.Roundtrips, n.Roundtrips), add(m.Tokens, n.Tokens), m.USD + n.USD}
}

// Times returns n times the amount.
func (m Amount) Times(n int) Amount {
	m, n = m.sane(), max(n, 0)
	return Amount{times(m.Roundtrips, n), times(m.Tokens, n), m.USD * float64(n)}
}

// An Account records spending, and rejects spending that would exceed its limits or the limits of an account above it. Several
// goroutines may use it at once. A nil account is unlimited and records nothing.
type Account struct {
	above *Account
	*tree
	limits Limits
	opened time.Time
	spent  Amount
	held   Possible // the part of spent that is only estimated
	used   Usage
	since  bool               // whether used also counts the usage recorded by earlier processes; see Under
	open   int                // the number of unsettled estimates
	run    bool               // whether the account was made by Run
	below  func(string) Usage // Earlier.Below, for an account made by Run
	runs   map[string]bill    // the bills of resumable runs, by id
}

// A tree is the shared state of an account and all accounts under it. They share a lock, because an amount is taken from a whole
// chain of accounts at once.
type tree struct {
	mu      sync.Mutex
	settled chan struct{} // closed when an estimate is settled; nil if no draw waits
	waiting int           // the number of waiting draws
}

// New returns a new account with the given limits. The limit on time is counted from now.
func New(l Limits) *Account {
	return &Account{tree: new(tree), limits: l, opened: time.Now()}
}

// whole reports whether the account belongs to a whole run rather than to a part of it.
func (a *Account) whole() bool { return a.above == nil }

// Sub returns a new account under a, with limits of its own. Its limit on time is counted from now. If a is nil, Sub is like New.
func (a *Account) Sub(l Limits) *Account {
	sub := New(l)
	if a != nil {
		sub.above, sub.tree = a, a.tree
	}
	return sub
}

type key struct{}

// With returns a copy of ctx in which calls and agents draw on the account a.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, key{}, a)
}

// From returns the account in ctx. If there is none, it returns nil, which is an unlimited account.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(key{}).(*Account)
	return a
}

// Spent returns the amount spent on this account and the accounts under it, including reservations.
func (a *Account) Spent() Amount {
	if a == nil {
		return Amount{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// Used returns the known usage of the draws on this account and the accounts under it. In a resumed run, it includes draws for
// steps whose results are recorded.
func (a *Account) Used() Usage {
	if a == nil {
		return Usage{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// use adds u to the usage of the account and the accounts above it. Accounts that Under has opened already include recorded
// usage.
func (a *Account) use(u Usage, recorded bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; a != nil; a = a.above {
		if !recorded || !a.since {
			a.used = a.used.Add(u)
		}
	}
}

// Under returns a new account under a for the steps below a path. In a resumed run, its Used starts with the usage of these steps
// in earlier processes, including attempts without a result and steps that are replayed as a whole.
func (a *Account) Under(path string) *Account {
	sub := a.Sub(Limits{})
	if run := a.OfRun(); run != nil && run.below != nil {
		sub.used, sub.since = run.below(path), true
	}
	return sub
}

// Left returns the remaining budget: for each limit, the smallest amount left on this account or any account above it, but at
// least 0.
func (a *Account) Left() Limits { return a.left(Amount{}) }

// left returns what Left would return if the amount back were first returned to the account.
func (a *Account) left(back Amount) Limits {
	if a == nil {
		return Limits{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rest(back)
}

// rest is like left, but the caller must have locked the tree.
func (a *Account) rest(back Amount) (left Limits) {
	for ; a != nil; a = a.above {
		limits := a.limits
		left = Limits{
			Roundtrips: least(left.Roundtrips, limits.Roundtrips, a.spent.Roundtrips-back.Roundtrips),
			Tokens:     least(left.Tokens, limits.Tokens, a.spent.Tokens-back.Tokens),
			USD:        least(left.USD, limits.USD, a.spent.USD-back.USD),
			Latency:    least(left.Latency, limits.Latency, time.Since(a.opened)),
		}
	}
	return left
}

// least returns the smaller of left and limit minus spent, where nil means unlimited.
func least[N int | float64 | time.Duration](left, limit *N, spent N) *N {
	if limit == nil {
		return left
	}
	return bounds.Least(left, new(max(max(*limit, 0)-spent, 0)))
}

// Deadline returns the earliest deadline of the account and the accounts above it. It returns false if none of them limits time.
func (a *Account) Deadline() (deadline time.Time, ok bool) {
	for ; a != nil; a = a.above {
		if a.limits.Latency == nil {
			continue
		}
		if end := a.opened.Add(max(*a.limits.Latency, 0)); !ok || end.Before(deadline) {
			deadline, ok = end, true
		}
	}
	return deadline, ok
}

// Context returns a context that ends at the account's deadline. The cause is then an *ExhaustedError. The caller must call the
// returned function to release the context.
func (a *Account) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := a.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	top := a
	for !top.whole() {
		top = top.above
	}
	whole, ok := top.Deadline()
	return context.WithDeadlineCause(ctx, end, &ExhaustedError{Limit: "latency-ms", Part: !ok || end.Before(whole)})
}
