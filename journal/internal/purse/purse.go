// Package purse keeps what budgets over several runs have paid and what running steps have reserved, in any store
// that has transactions.
package purse

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/journal/internal/record"
)

// A Key names a budget in a period, see [budget.Shared.Key].
type Key struct {
	Account string
	Day     int64
}

// A Hold is what the last attempt of a step has reserved of a budget.
type Hold struct {
	Run  int64
	Step dag.ID
	Key
	budget.Amount
}

// A Store has the changes of one transaction.
type Store interface {
	// Reader's Purse is not changed by another transaction until this one ends.
	Reader
	// Spend adds to both amounts. Amounts may be negative.
	Spend(k Key, used, held budget.Amount) error
	// Holds returns what the steps of a run have reserved; without steps, of all.
	Holds(run int64, steps ...dag.ID) ([]Hold, error)
	// Hold stores what a step has reserved.
	Hold(Hold) error
	// Drop removes it.
	Drop(Hold) error
}

// Reserve reserves the most that an attempt of a step may cost, of each budget. Refused says which budget cannot
// pay it. What an earlier attempt has reserved, whose process died, becomes its cost.
func Reserve(s Store, run int64, step dag.ID, of []budget.Shared, q budget.Quote, now time.Time) (refused, err error) {
	if err = Lapse(s, run, step); err != nil {
		return nil, err
	}
	for _, b := range of {
		bal, err := Balance(s, b, now)
		if err != nil {
			return nil, err
		}
		if refused = bal.Pays(q); refused != nil {
			return refused, nil
		}
	}
	most := budget.Amount{}.Add(q.Most) // without negative parts
	for _, b := range of {
		h := Hold{run, step, KeyOf(b, now), most}
		if err = s.Hold(h); err == nil {
			err = s.Spend(h.Key, budget.Amount{}, most)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// A Reader reads what is paid of a budget and reserved.
type Reader interface {
	Purse(Key) (used, held budget.Amount, err error)
}

// Balance returns the state of a budget in the period of a time.
func Balance(s Reader, b budget.Shared, at time.Time) (bal budget.Balance, err error) {
	bal.Shared = b
	_, bal.Renews = b.Per.Bounds(at)
	bal.Used, bal.Held, err = s.Purse(KeyOf(b, at))
	return bal, err
}

// Limited reports whether a run draws on a budget.
func Limited(of []budget.Shared, b budget.Shared) bool {
	return slices.ContainsFunc(of, func(o budget.Shared) bool { return o.Name == b.Name && o.Per == b.Per && o.Payer == b.Payer })
}

// KeyOf returns the key of a budget at a time.
func KeyOf(b budget.Shared, at time.Time) Key {
	account, day := b.Key(at)
	return Key{account, day}
}

// Settle replaces what a step has reserved by its cost, also of a budget on which its run no longer draws. A budget of
// which it has reserved nothing pays, too. An attempt that waits has sent nothing, so it costs no round trips: the visits
// of a batch would use a budget up.
func Settle(s Store, run int64, step dag.ID, of []budget.Shared, used budget.Usage, waits bool, now time.Time) error {
	holds, err := s.Holds(run, step)
	if err != nil {
		return err
	}
	paid := map[string]bool{}
	for _, h := range holds {
		cost := used.Amount()
		if !waits {
			cost.Roundtrips = h.Roundtrips
		}
		paid[h.Account] = true
		if err := errors.Join(s.Spend(h.Key, cost, negative(h.Amount)), s.Drop(h)); err != nil {
			return err
		}
	}
	for _, b := range of {
		if k := KeyOf(b, now); !paid[k.Account] {
			if err := s.Spend(k, used.Amount(), budget.Amount{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lapse makes what steps of a run have reserved their cost; without steps, of all.
func Lapse(s Store, run int64, steps ...dag.ID) error {
	holds, err := s.Holds(run, steps...)
	for _, h := range holds {
		if err == nil {
			err = s.Spend(h.Key, h.Amount, negative(h.Amount))
		}
		if err == nil {
			err = s.Drop(h)
		}
	}
	return err
}

func negative(m budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: -m.Roundtrips, Tokens: -m.Tokens, USD: -m.USD}
}

// Sum adds what Spend was given.
func Sum(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips+n.Roundtrips, 0), Tokens: max(m.Tokens+n.Tokens, 0), USD: max(m.USD+n.USD, 0)}
}

// Claimed returns the quote that the step recorded in ctx reserves, zero for a step that costs nothing.
func Claimed(ctx context.Context) budget.Quote {
	if record.Declared(ctx) == (budget.Amount{}) {
		return budget.Quote{}
	}
	return declared.Claimed[budget.Quote](ctx)
}

type stepKey struct{}

// WithAttempt returns a context for the post that announces an attempt of a step in a process other than the one that has its
// run. The post reserves what the step claims.
func WithAttempt(ctx context.Context, step dag.ID) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// Attempt returns the step that a post announces, and its quote, zero if it announces none.
func Attempt(ctx context.Context) (dag.ID, budget.Quote) {
	step, ok := ctx.Value(stepKey{}).(dag.ID)
	if !ok {
		return step, budget.Quote{}
	}
	return step, Claimed(ctx)
}

// Patience is how long a step waits for a budget that does not change. Tests set it.
var Patience = time.Minute

// Wait calls do until it succeeds or waiting is in vain: while a budget refuses a step that it could pay if the
// reservations of others come back, up to a minute after its last change.
func Wait(ctx context.Context, do func() error) error {
	var last budget.Balance
	var since time.Time
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		spent, ok := errors.AsType[*budget.ExhaustedError](err)
		if !ok || !spent.Later {
			return err
		}
		if now := *spent.Shared; since.IsZero() || now.Used != last.Used || now.Held != last.Held {
			last, since = now, time.Now()
		}
		if time.Since(since) > Patience {
			return err
		}
		timer := time.NewTimer(pause + rand.N(pause/4))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return budget.Costly(context.Cause(ctx), budget.Usage{}) // nothing was sent
		}
		timer.Stop()
	}
}
