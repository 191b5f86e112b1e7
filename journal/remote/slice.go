package remote

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// slice is the part of the run's account that one leaf may spend in another process.
type slice struct {
	account *budget.Account
	number  int             // of the last slice of the leaf that is known, in any process
	posts   map[string]bool // the Posts of those slices of the leaf that are known; under the lock of the desk
	need    budget.Quote    // the last slice refused it; zero before
	want    budget.Amount   // what the largest slice had left for the leaf
	charged budget.Amount   // spent from the earlier slices, or by earlier processes
	taken   *budget.Slice   // nil until it is taken

	limits, whole *budget.Limits // of all slices of the leaf so far, nil without a limit
}

// newSlice returns the slice of a leaf. The run was already charged with what the leaf spent
// before the run was resumed.
func newSlice(ctx context.Context, p past) *slice {
	account := budget.From(ctx)
	account.Replay(p.before)
	return &slice{account: account, number: p.number, posts: map[string]bool{}, need: p.need, want: p.want, charged: p.before}
}

// first takes a slice for a leaf that has a place in the window: a part of what is left for each
// place, or as much as an earlier process gave it.
func (s *slice) first(places int) {
	if s.taken != nil {
		return
	}
	left, part := s.account.Left(), 2*places
	s.want = larger(s.want, budget.Amount{Roundtrips: share(left.Roundtrips, part), Tokens: share(left.Tokens, part), USD: left.USD / float64(part)})
	// The zero quote waits for nothing and is never refused.
	if taken, err := s.account.Slice(context.Background(), budget.Quote{}, s.want); err == nil {
		s.took(taken)
	}
}

func share(left, part int) int { return (left + part - 1) / part }

// more takes what the last slice refused, and as much again as the leaf has spent so far. It waits
// while other slices and estimates leave too little, and the leaf has no place in the window.
func (s *slice) more(ctx context.Context) error {
	taken, err := s.account.Slice(ctx, s.need, larger(s.want, s.charged))
	if err == nil {
		s.took(taken)
	}
	return err
}

// took notes a slice. Its limits in the other process include what the leaf has spent.
func (s *slice) took(taken *budget.Slice) {
	s.taken, s.limits, s.whole = taken, nil, nil
	if taken.Whole != (budget.Limits{}) {
		s.limits, s.whole = new(beyond(taken.Limits, s.charged)), new(beyond(taken.Whole, s.charged))
	}
}

// beyond returns limits that have room for an amount that was spent before.
func beyond(l budget.Limits, spent budget.Amount) budget.Limits {
	return budget.Limits{Roundtrips: after(l.Roundtrips, spent.Roundtrips), Tokens: after(l.Tokens, spent.Tokens), USD: after(l.USD, spent.USD)}
}

func after[N int | float64](limit, spent N) N {
	switch {
	case limit == 0:
		return 0
	case limit < 0 && spent == 0:
		return -1
	}
	return max(limit, 0) + spent
}

// settle replaces the reservation by what all slices of the leaf have spent. If that is less than the
// leaf was charged with, an attempt that counted as paid was not made.
func (s *slice) settle(spent budget.Amount) {
	s.account.Refund(less(s.charged, spent))
	s.taken.Settle(less(spent, s.charged))
	s.taken, s.charged = nil, spent
}

// cancel gives the reservation back.
func (s *slice) cancel() {
	s.taken.Settle(budget.Amount{})
	s.taken = nil
}

// less returns by how much m is larger than n, in each part.
func less(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips-n.Roundtrips, 0), Tokens: max(m.Tokens-n.Tokens, 0), USD: max(m.USD-n.USD, 0)}
}

// larger returns the larger of two amounts, in each part.
func larger(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips, n.Roundtrips), Tokens: max(m.Tokens, n.Tokens), USD: max(m.USD, n.USD)}
}

// post writes a grant as the next slice of a leaf.
func (s *slice) post(ctx context.Context, d *desk, leaf dag.ID, g grant) error {
	g.Holder, g.Post = d.holder, rand.Text()
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
			s.number, s.posts[g.Post] = n, true
			return nil
		}
	}
}

func sliceOf(leaf dag.ID, n int) string { return fmt.Sprintf("%s%s/%d", sliceKey, leaf, n) }
