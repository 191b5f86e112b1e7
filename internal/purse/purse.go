// Package purse keeps what budgets over several runs have paid and what running steps have reserved, in any store
// that has transactions.
package purse

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/kind"
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
	State State
}

// A State says what a lost reservation means.
type State int64

// The states of a reservation. They are in databases.
const (
	Running State = iota // the attempt runs: what it may cost is paid if its process dies
	Asked                // the request waits for a batch: nothing is sent
	Sent                 // a batch has the request, or is about to: the next attempt reads its answer
)

// An End says how an attempt ended whose cost is known.
type End int

// The ends of attempts.
const (
	Over   End = iota // with a result or a failure
	Waits             // without one, and nothing was sent
	Queued            // the same, and its request waits for the next batch
	Flying            // without one, and a batch has its request
)

// EndOf returns how an attempt ended with an error.
func EndOf(err error) End {
	switch sent, batch := fault.Sent(err); {
	case !errors.Is(err, kind.Waiting):
		return Over
	case sent:
		return Flying
	case batch:
		return Queued
	}
	return Waits
}

// A Store has the changes of one transaction.
type Store interface {
	// Reader's Purse is not changed by another transaction until this one ends.
	Reader
	// Spend adds to both amounts. Amounts may be negative.
	Spend(k Key, used, held budget.Amount) error
	// Holds returns what the steps of a run have reserved; without steps, of all.
	Holds(run int64, steps ...dag.ID) ([]Hold, error)
	// Hold stores what a step has reserved, in place of what it had reserved of the budget.
	Hold(Hold) error
	// Drop removes it.
	Drop(Hold) error
}

// Reserve reserves the most that an attempt of a step may cost, of each budget. Refused says which budget cannot
// pay it. What an earlier attempt has reserved, whose process died, becomes its cost. A step whose request is in a batch
// reserves nothing more and is never refused, unless it asks the model directly now.
func Reserve(s Store, run int64, step dag.ID, of []budget.Shared, q Claim, now time.Time) (refused, err error) {
	holds, err := s.Holds(run, step)
	if err != nil || q.Batched && InBatch(holds) {
		return nil, err
	}
	if err = lapse(s, holds); err != nil {
		return nil, err
	}
	for _, b := range of {
		bal, err := Balance(s, b, now)
		if err != nil {
			return nil, err
		}
		if refused = bal.Pays(q.Quote); refused != nil {
			return refused, nil
		}
	}
	most := budget.Amount{}.Add(q.Most) // without negative parts
	for _, b := range of {
		h := Hold{run, step, KeyOf(b, now), most, Running}
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
	return slices.ContainsFunc(of, func(o budget.Shared) bool { return counted(o) == counted(b) })
}

// counted is a budget without its limits.
func counted(b budget.Shared) budget.Shared {
	b.Limits = budget.Limits{}
	return b
}

// KeyOf returns the key of a budget at a time.
func KeyOf(b budget.Shared, at time.Time) Key {
	account, day := b.Key(at)
	return Key{account, day}
}

// Kept is for how many days it is kept what was spent on a day.
const Kept = 400

// DayOf returns the number of a day of Unix time.
func DayOf(at time.Time) int64 { return at.Unix() / int64(24*time.Hour/time.Second) }

// Settle replaces what a step has reserved by its cost, also of a budget on which its run no longer draws. A budget of
// which it has reserved nothing pays, too. An attempt that waits has sent nothing, so it costs no round trips. One that
// waits for a batch keeps its reservation and pays for what it has sent besides.
func Settle(s Store, run int64, step dag.ID, of []budget.Shared, used budget.Usage, end End, now time.Time) error {
	holds, err := s.Holds(run, step)
	if err != nil {
		return err
	}
	cost, paid := used.Amount(), map[string]bool{}
	for _, h := range holds {
		paid[h.Account] = true
		switch {
		case end == Over:
			cost.Roundtrips = h.Roundtrips
			fallthrough
		case end == Waits:
			err = errors.Join(s.Spend(h.Key, cost, negative(h.Amount)), s.Drop(h))
		case cost != (budget.Amount{}): // another request was sent before
			err = s.Spend(h.Key, cost, budget.Amount{})
		}
		if err != nil {
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
	switch end {
	case Queued:
		return move(s, holds, Asked)
	case Flying:
		return move(s, holds, Sent)
	}
	return nil
}

// InBatch reports whether the last attempt of a step, of which these are the reservations, waits for a batch that was sent.
func InBatch(holds []Hold) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool { return h.State == Sent })
}

// move changes the state of reservations.
func move(s Store, holds []Hold, to State) error {
	for _, h := range holds {
		if h.State == to {
			continue
		}
		h.State = to
		if err := s.Hold(h); err != nil {
			return err
		}
	}
	return nil
}

// Ended tells of the end of a process's work on a run. It lapses if its steps can have no result any more unless it is
// resumed. A run that waits is about to send the requests that wait for a batch.
func Ended(s Store, run int64, lapses, waits bool) error {
	if lapses {
		return Lapse(s, run)
	}
	if !waits {
		return nil
	}
	holds, err := s.Holds(run)
	if err != nil {
		return err
	}
	return move(s, slices.DeleteFunc(holds, func(h Hold) bool { return h.State != Asked }), Sent)
}

// Lapse makes what steps of a run have reserved their cost; without steps, of all. Requests that were never sent cost
// nothing.
func Lapse(s Store, run int64, steps ...dag.ID) error {
	holds, err := s.Holds(run, steps...)
	if err != nil {
		return err
	}
	return lapse(s, holds)
}

func lapse(s Store, holds []Hold) error {
	for _, h := range holds {
		cost := h.Amount
		if h.State == Asked {
			cost = budget.Amount{}
		}
		if err := s.Spend(h.Key, cost, negative(h.Amount)); err != nil {
			return err
		}
		if err := s.Drop(h); err != nil {
			return err
		}
	}
	return nil
}

func negative(m budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: -m.Roundtrips, Tokens: -m.Tokens, USD: -m.USD}
}

// Sum adds what Spend was given.
func Sum(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips+n.Roundtrips, 0), Tokens: max(m.Tokens+n.Tokens, 0), USD: max(m.USD+n.USD, 0)}
}

// A Claim is what a step reserves.
type Claim struct {
	budget.Quote
	Batched bool // its request may wait for a batch
}

// Claimed returns what the step recorded in ctx reserves, zero for a step that costs nothing.
func Claimed(ctx context.Context) (c Claim) {
	if record.Declared(ctx) == (budget.Amount{}) {
		return c
	}
	if c.Quote = declared.Claimed[budget.Quote](ctx); c.Quote != (budget.Quote{}) {
		c.Batched = transport.Batched(ctx)
	}
	return c
}
