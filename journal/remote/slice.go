package remote

import (
	"context"

	"github.com/stonelayer/stone/budget"
)

// slice is the part of the run's account that one leaf may spend in another process.
type slice struct {
	account *budget.Account
	part    int            // it is so much of what is left
	number  int            // of the slices of the leaf
	limits  *budget.Amount // of all slices of the leaf so far, nil without a limit
	charged budget.Amount  // spent from the earlier slices
	taken   *budget.Reservation
}

const (
	firstPart = 64 // the first slice is this part of what is left
	growth    = 8  // the next one is so many times larger
	lastPart  = 2  // others must not find the account empty for a reservation alone
)

func newSlice(ctx context.Context) *slice { return &slice{account: budget.From(ctx), part: firstPart} }

// take reserves the slice. It reports false if the account cannot pay.
func (s *slice) take() bool {
	if s.account == nil {
		return true
	}
	left := s.account.Left()
	if left.Roundtrips < 0 || left.Tokens < 0 || left.USD < 0 {
		return false
	}
	amount := budget.Amount{Roundtrips: share(left.Roundtrips, s.part), Tokens: share(left.Tokens, s.part), USD: left.USD / float64(s.part)}
	if amount != (budget.Amount{}) {
		// A dimension without a limit stays zero, which is no limit in the other process too.
		all := amount.Add(budget.Amount{
			Roundtrips: min(amount.Roundtrips, 1) * s.charged.Roundtrips,
			Tokens:     min(amount.Tokens, 1) * s.charged.Tokens,
		})
		if amount.USD > 0 {
			all.USD += s.charged.USD
		}
		s.limits = &all
	}
	var err error
	s.taken, err = s.account.Reserve(amount)
	return err == nil
}

func share(left, part int) int { return (left + part - 1) / part }

// settle replaces the reservation by what all slices of the leaf have spent. That is charged
// first, so that no one else can spend it in between.
func (s *slice) settle(spent budget.Amount) {
	s.account.Charge(budget.Amount{
		Roundtrips: spent.Roundtrips - s.charged.Roundtrips, Tokens: spent.Tokens - s.charged.Tokens, USD: spent.USD - s.charged.USD,
	})
	s.charged = spent
	s.cancel()
}

// cancel gives the reservation back.
func (s *slice) cancel() {
	s.taken.Cancel()
	s.taken = nil
}

// grow makes the next slice larger. It reports false if it cannot be.
func (s *slice) grow() bool {
	if s.limits == nil || s.part == lastPart {
		return false
	}
	s.part, s.number = max(s.part/growth, lastPart), s.number+1
	return true
}
