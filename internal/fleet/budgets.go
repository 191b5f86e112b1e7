// Package fleet checks budgets that several runs share. A paid step can start only if the budget covers its estimated
// cost in addition to the period's recorded costs, the outstanding batches, and the steps that this process has in flight.
// Reservations in the database would also cover the steps that other processes have in flight, which is only a few seconds of
// work. But they would need a row for each running step, a lock order, and a rule for every way in which a process, a batch or a
// run can end.
package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/transport"
)

// A Key identifies a budget in a period; see [budget.Shared.Key].
type Key struct {
	Account string
	Day     int64
}

// KeyOf returns the key of a budget for the period that contains the time at.
func KeyOf(b budget.Shared, at time.Time) Key {
	account, day := b.Key(at)
	return Key{account, day}
}

// Kept is the number of days for which daily spending is stored.
const Kept = 400

// DayOf returns the day of a time, as the number of days since 1970-01-01.
func DayOf(at time.Time) int64 { return at.Unix() / int64(24*time.Hour/time.Second) }

// A Reader reads the amounts that all processes have recorded.
type Reader interface {
	// Spent returns the recorded spending of the budget in the period.
	Spent(Key) (budget.Amount, error)
	// Outstanding returns the estimated cost of batches whose answers have not been read yet, by run ID.
	Outstanding(budget.Shared) (map[string]budget.Amount, error)
}

// A Start describes a paid step that is about to start.
type Start struct {
	Run  string
	Step dag.ID
	Of   []budget.Shared
	Claim
	Again bool // whether the step has started before
}

// A Claim is the maximum cost of a step.
type Claim struct {
	budget.Quote
	Batched bool // whether the step's request may wait for a batch
}

// Claimed returns the claim of the step recorded in ctx, or the zero Claim for a step without cost.
func Claimed(ctx context.Context) (c Claim) {
	if record.Declared(ctx) == (budget.Amount{}) {
		return c
	}
	if c.Quote = declared.Claimed[budget.Quote](ctx); c.Quote != (budget.Quote{}) {
		c.Batched = transport.Batched(ctx)
	}
	return c
}

// Budgets tracks the steps that this process has in flight. The zero Budgets is empty and ready to use. It is safe for concurrent
// use.
type Budgets struct {
	mu    sync.Mutex
	steps map[place]flying
	of    map[string]map[string]*sum // amounts in flight, by account and run
}

type place struct {
	run  string
	step dag.ID
}

// flying is a step in flight: it has started but not ended, or is waiting for a batch.
type flying struct {
	accounts []string
	most     budget.Amount
	batched  bool
}

// A sum is the amount that a run has in flight on an account.
type sum struct {
	direct  budget.Amount
	batched budget.Amount // part that an outstanding batch may also contain
	steps   int           // number of steps in flight
	left    time.Time     // when the run left this process while requests were waiting for batches
}

// noting is the maximum time between a run leaving this process and the recording of its batches.
const noting = time.Minute

// Admit counts a step as in flight. If one of the budgets cannot pay for the step, Admit does not count the step and returns the
// reason as refused. A batch request that has started before was checked at its first start, and is not refused any more.
func (f *Budgets) Admit(from Reader, s Start, now time.Time) (refused, err error) {
	for _, b := range s.Of {
		if s.Batched && s.Again {
			break
		}
		bal, err := f.Balance(from, b, now)
		if err != nil {
			return nil, err
		}
		if refused = bal.Pays(s.Quote); refused != nil {
			return refused, nil
		}
	}
	f.End(s.Run, s.Step)
	step := flying{most: budget.Amount{}.Add(s.Most), batched: s.Batched} // replaces negative parts with 0
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range s.Of {
		account, _ := b.Key(now)
		step.accounts = append(step.accounts, account)
	}
	if f.steps == nil {
		f.steps, f.of = map[place]flying{}, map[string]map[string]*sum{}
	}
	f.steps[place{s.Run, s.Step}] = step
	f.count(s.Run, step, step.most, 1)
	return nil, nil
}

// count adds to the amount and the number of steps that a run has in flight. The caller must hold f.mu.
func (f *Budgets) count(run string, s flying, amount budget.Amount, steps int) {
	for _, account := range s.accounts {
		if f.of[account] == nil {
			f.of[account] = map[string]*sum{}
		}
		of := f.of[account][run]
		if of == nil {
			of = new(sum)
			f.of[account][run] = of
		}
		of.steps += steps
		if s.batched {
			of.batched = Sum(of.batched, amount)
		} else {
			of.direct = Sum(of.direct, amount)
		}
	}
}

// End stops counting a step as in flight and returns the amount that was in flight for it. It is called when the step's cost has
// been recorded, or if the step has no cost.
func (f *Budgets) End(run string, step dag.ID) (most budget.Amount) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.steps[place{run, step}]
	if !ok {
		return most
	}
	delete(f.steps, place{run, step})
	f.count(run, s, Minus(s.most), -1)
	for _, account := range s.accounts {
		if of := f.of[account][run]; of.steps == 0 && of.direct == (budget.Amount{}) {
			delete(f.of[account], run) // also discards rounding errors in the sums
		}
	}
	return s.most
}

// Lose ends a step with an unknown cost. The step's estimate stays in flight until the run leaves this process and records the
// estimate.
func (f *Budgets) Lose(run string, step dag.ID, cost budget.Amount) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.steps[place{run, step}]
	if !ok {
		return
	}
	delete(f.steps, place{run, step})
	f.count(run, s, Minus(s.most), -1)
	s.batched = false
	f.count(run, s, cost, 0)
}

// Most returns the amount in flight for a step.
func (f *Budgets) Most(run string, step dag.ID) budget.Amount {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps[place{run, step}].most
}

// Leave ends all steps of a run that leaves this process. If the run is waiting, its batch requests stay in flight until their
// batches have been recorded.
func (f *Budgets) Leave(run string, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := range f.steps {
		if at.run == run {
			delete(f.steps, at)
		}
	}
	for _, runs := range f.of {
		of := runs[run]
		if of == nil {
			continue
		}
		of.direct, of.steps, of.left = budget.Amount{}, 0, time.Now()
		if !waits || of.batched == (budget.Amount{}) {
			delete(runs, run)
		}
	}
}

// Balance returns the balance of a budget in the period that contains the time at.
func (f *Budgets) Balance(from Reader, b budget.Shared, at time.Time) (bal budget.Balance, err error) {
	bal.Shared = b
	_, bal.Renews = b.Per.Bounds(at)
	key := KeyOf(b, at)
	if bal.Used, err = from.Spent(key); err != nil {
		return bal, err
	}
	outstanding, err := from.Outstanding(b)
	if err != nil {
		return bal, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for run, of := range f.of[key.Account] {
		if !of.left.IsZero() && time.Since(of.left) > noting {
			delete(f.of[key.Account], run)
			continue
		}
		bal.Held = bal.Held.Add(of.direct).Add(larger(of.batched, outstanding[run]))
	}
	for run, estimate := range outstanding {
		if f.of[key.Account][run] == nil {
			bal.Held = bal.Held.Add(estimate)
		}
	}
	return bal, nil
}

func larger(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips, n.Roundtrips), Tokens: max(m.Tokens, n.Tokens), USD: max(m.USD, n.USD)}
}

// Sum returns the sum of two amounts. The second may be negative.
func Sum(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips+n.Roundtrips, 0), Tokens: max(m.Tokens+n.Tokens, 0), USD: max(m.USD+n.USD, 0)}
}

// Minus returns the amount with the opposite sign.
func Minus(m budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: -m.Roundtrips, Tokens: -m.Tokens, USD: -m.USD}
}
