// Package flight checks budgets over several runs: a paid step starts only if the period's recorded costs, outstanding batches
// and this process's steps in flight leave room for its estimate. Reservations in the database would also count other processes'
// steps in flight, which are seconds of work. They would need a row per running step, a lock order, and a rule for every way in
// which a process, a batch or a run can end.
package flight

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

// A Key names a budget in a period, see [budget.Shared.Key].
type Key struct {
	Account string
	Day     int64
}

// KeyOf returns the key of a budget at a time.
func KeyOf(b budget.Shared, at time.Time) Key {
	account, day := b.Key(at)
	return Key{account, day}
}

// Kept is the number of days for which daily spending is kept.
const Kept = 400

// DayOf returns the number of the day in Unix time.
func DayOf(at time.Time) int64 { return at.Unix() / int64(24*time.Hour/time.Second) }

// A Reader reads the recorded amounts of all processes.
type Reader interface {
	// Spent returns the recorded spending of a budget in a period.
	Spent(Key) (budget.Amount, error)
	// Outstanding returns, by the ids of their runs, the estimates of batches whose answers were not read.
	Outstanding(budget.Shared) (map[string]budget.Amount, error)
}

// A Start is a paid step that is about to start.
type Start struct {
	Run  string
	Step dag.ID
	Of   []budget.Shared
	Claim
	Again bool // it has started before
}

// A Claim is the highest cost of a step.
type Claim struct {
	budget.Quote
	Batched bool // its request may wait for a batch
}

// Claimed returns the claim of the step recorded in ctx, or zero for a step that costs nothing.
func Claimed(ctx context.Context) (c Claim) {
	if record.Declared(ctx) == (budget.Amount{}) {
		return c
	}
	if c.Quote = declared.Claimed[budget.Quote](ctx); c.Quote != (budget.Quote{}) {
		c.Batched = transport.Batched(ctx)
	}
	return c
}

// Flight counts the steps that this process has in flight. Its zero value is empty and ready. Several goroutines may use it at once.
type Flight struct {
	mu    sync.Mutex
	steps map[place]flying
	of    map[string]map[string]*sum // by account and run
}

type place struct {
	run  string
	step dag.ID
}

// flying is a step that has started and not ended, or that is waiting for a batch.
type flying struct {
	accounts []string
	most     budget.Amount
	batched  bool
}

// A sum is a run's amount in flight on an account.
type sum struct {
	direct  budget.Amount
	batched budget.Amount // part that a batch may contain, whose estimate is counted as well
	steps   int           // that fly
	left    time.Time     // when the run left this process with requests for batches
}

// noting is the maximum time that a run takes to note its batches after it has left.
const noting = time.Minute

// Admit counts a step as in flight. Refused names the budget without room for it. A batch request was checked at first and is not
// refused later.
func (f *Flight) Admit(from Reader, s Start, now time.Time) (refused, err error) {
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
	step := flying{most: budget.Amount{}.Add(s.Most), batched: s.Batched} // without negative parts
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

// count adds an amount in flight to a run. The caller has f.mu.
func (f *Flight) count(run string, s flying, amount budget.Amount, steps int) {
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

// End stops counting a step: its cost is recorded, or it has none. It returns the amount that was in flight.
func (f *Flight) End(run string, step dag.ID) (most budget.Amount) {
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
			delete(f.of[account], run) // with the rounding errors of its sums
		}
	}
	return s.most
}

// Lose ends a step whose cost is unknown. Its estimate stays in flight until the run leaves and records it.
func (f *Flight) Lose(run string, step dag.ID, cost budget.Amount) {
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

// Most returns a step's amount in flight.
func (f *Flight) Most(run string, step dag.ID) budget.Amount {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps[place{run, step}].most
}

// Leave ends the steps of a run that leaves this process. If the run waits, its batch requests stay in flight until their batches
// are noted.
func (f *Flight) Leave(run string, waits bool) {
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

// Balance returns the state of a budget in the period that contains a time.
func (f *Flight) Balance(from Reader, b budget.Shared, at time.Time) (bal budget.Balance, err error) {
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

// Sum adds two amounts. The second may be negative.
func Sum(m, n budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: max(m.Roundtrips+n.Roundtrips, 0), Tokens: max(m.Tokens+n.Tokens, 0), USD: max(m.USD+n.USD, 0)}
}

// Minus returns the negative amount.
func Minus(m budget.Amount) budget.Amount {
	return budget.Amount{Roundtrips: -m.Roundtrips, Tokens: -m.Tokens, USD: -m.USD}
}
