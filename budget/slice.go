package budget

import "context"

// A Slice is a part of an account that another process spends. It is an open estimate until it is
// settled: draws and further slices that need it wait.
type Slice struct {
	// Limits bound the slice. Zero means that the account is unlimited.
	Limits Limits
	// Whole is the account's remainder before the slice, without a time limit.
	Whole    Limits
	reserved *reservation
}

// Slice reserves what a step in another process needs, and up to want if that is at most half of what
// is left. It waits, and fails, as [Account.Draw] does. The zero quote needs nothing and never fails:
// then the slice may have nothing to spend.
func (a *Account) Slice(ctx context.Context, need Quote, want Amount) (*Slice, error) {
	if a == nil {
		return &Slice{}, nil
	}
	s := new(Slice)
	if need == (Quote{}) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.cut(s, need.Most, want)
		return s, nil
	}
	if err := a.await(ctx, need, func() { a.cut(s, need.Most, want) }); err != nil {
		return nil, err
	}
	return s, nil
}

// cut takes the slice from the account. The tree must be locked.
func (a *Account) cut(s *Slice, need, want Amount) {
	need, want = need.sane(), want.sane()
	left := a.rest(Amount{})
	left.Latency = 0
	s.Whole = left
	var took Amount
	took.Roundtrips, s.Limits.Roundtrips = portion(left.Roundtrips, need.Roundtrips, want.Roundtrips)
	took.Tokens, s.Limits.Tokens = portion(left.Tokens, need.Tokens, want.Tokens)
	took.USD, s.Limits.USD = portion(left.USD, need.USD, want.USD)
	// Of an empty slice nothing comes back, so nobody waits for it.
	s.reserved = &reservation{from: a, took: took, estimate: took != (Amount{}), lent: true}
	a.take(took)
	s.reserved.count(+1)
}

// portion returns how much of what is left a slice takes, and its limit.
func portion[N int | float64](left, need, want N) (took, limit N) {
	if left == 0 {
		return 0, 0 // unlimited
	}
	if took = max(need, min(want, max(left, 0)/2)); took == 0 {
		return 0, -1
	}
	return took, took
}

// Settle ends the slice with what was spent of it, round trips included. Only the first call of
// Settle or Keep counts.
func (s *Slice) Settle(spent Amount) {
	if s != nil {
		s.reserved.settle(spent)
	}
}

// Keep ends the slice and leaves it taken: what was spent of it is unknown.
func (s *Slice) Keep() {
	if s != nil && s.reserved != nil {
		s.reserved.lose(s.reserved.took)
	}
}

// Refund returns an amount that was charged as possibly spent, and was not.
func (a *Account) Refund(amount Amount) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveBack(amount.sane())
}

// sliced has what only the account of a slice knows.
type sliced struct {
	whole   Limits // its own
	refused *Quote
}

// OpenSlice opens the account of a slice in the process that spends it, for a step that has spent an
// amount of earlier slices. [Account.Left] covers the whole account, so a body that asks
// decides as it would there. A draw beyond the slice is refused, see Refused.
func OpenSlice(limits, whole Limits) *Account {
	a := New(limits)
	a.slice = &sliced{whole: whole}
	return a
}

// Refused returns the largest quote that the account of a slice refused, or nil. What was
// computed after that does not count: the whole account may pay.
func (a *Account) Refused() *Quote {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slice == nil {
		return nil
	}
	return a.slice.refused
}

// note notes a refused quote. The tree must be locked.
func (s *sliced) note(q Quote) {
	if s == nil {
		return
	}
	if s.refused != nil {
		q.Least, q.Most = larger(q.Least, s.refused.Least), larger(q.Most, s.refused.Most)
	}
	q.Unpriced = ""
	// Without a token left, an account refuses even what declares none.
	q.Least.Tokens, q.Most.Tokens = max(q.Least.Tokens, 1), max(q.Most.Tokens, 1)
	s.refused = &q
}

// larger returns the larger of two amounts in each part.
func larger(m, n Amount) Amount {
	return Amount{max(m.Roundtrips, n.Roundtrips), max(m.Tokens, n.Tokens), max(m.USD, n.USD)}
}
