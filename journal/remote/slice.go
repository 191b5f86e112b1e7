package remote

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// slice is the part of the run's account that one leaf may spend in another process.
type slice struct {
	account *budget.Account
	part    int            // it is so much of what is left
	number  int            // of the slice, among those of the leaf in all processes
	limits  *budget.Amount // of all slices of the leaf so far, nil without a limit
	charged budget.Amount  // spent from the earlier slices, or by earlier processes
	taken   *budget.Reservation
}

const (
	firstPart = 64 // the first slice is this part of what is left
	growth    = 8  // the next one is so many times larger
	lastPart  = 2  // others must not find the account empty for a reservation alone
)

// newSlice returns the first slice of a leaf. The run was already charged with what the leaf spent
// before the run was resumed.
func newSlice(ctx context.Context, before budget.Amount) *slice {
	account := budget.From(ctx)
	account.Replay(before)
	return &slice{account: account, part: firstPart, charged: before}
}

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
	s.part = max(s.part/growth, lastPart)
	return true
}

// post writes a grant as the next slice of a leaf.
func (s *slice) post(ctx context.Context, d *desk, leaf dag.ID, g grant) error {
	for n := s.number + 1; ; n++ {
		i, err := item(sliceOf(leaf, n), g)
		if err != nil {
			return err
		}
		kept, err := d.board.Post(ctx, d.run, i)
		if err != nil {
			return err
		}
		var found grant
		if err := read(kept[0], &found); err != nil {
			return err
		}
		if found.Post == g.Post {
			d.mu.Lock()
			defer d.mu.Unlock()
			s.number = n
			return nil
		}
	}
}

func sliceOf(leaf dag.ID, n int) string { return fmt.Sprintf("%s%s/%d", sliceKey, leaf, n) }
