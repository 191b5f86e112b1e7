package log

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/purse"
	"github.com/stonelayer/stone/journal"
)

// purses are the budgets that a transaction has read and locked. All transactions lock in the same order,
// and before any run.
type purses struct {
	read  map[purse.Key]*amounts
	holds map[int64][]purse.Hold // of the steps that start, by run
}

type amounts struct{ used, held budget.Amount }

// A claim is what a step that starts reserves.
type claim struct {
	run   int64 // its number; 0 if the writer knows it
	step  dag.ID
	of    []budget.Shared
	quote purse.Claim
}

// A settled step has a result, or an attempt without one whose cost is known.
type settled struct {
	step dag.ID
	used budget.Usage
	end  purse.End
}

// claim returns what a write reserves. It has no quote if that is nothing.
func (x *write) claim() (c claim) {
	switch {
	case x.intent != nil && x.intent.quote != (purse.Claim{}):
		if of := x.run.budgets(); len(of) > 0 {
			return claim{run: x.run.row, step: x.intent.digest, of: of, quote: x.intent.quote}
		}
	}
	return c
}

// pays returns the budgets that a write may pay.
func (x *write) pays() []budget.Shared {
	if x.run == nil || x.do == nil && (x.result == nil || !x.result.costs) {
		return nil
	}
	of := x.run.budgets()
	if own := x.run.own(); own.Name != "" {
		of = append(slices.Clip(of), own)
	}
	return of
}

// own returns the budget of everything that the account of a run spends on a day.
func (r *run) own() budget.Shared {
	return budget.Shared{Name: Column(r.payer()), Per: budget.Day, Payer: true}
}

// openPurses reads and locks the budgets from which a group reserves, and locks the budgets that it may pay.
func (t *transaction) openPurses(group []*write) error {
	keys, steps := map[purse.Key]bool{}, map[int64][]dag.ID{} // true for budgets from which the group reserves
	now := t.j.now()
	for _, x := range group {
		c := x.claim()
		for _, b := range c.of {
			keys[keyOf(b, now)] = true
		}
		if len(c.of) > 0 {
			steps[c.run] = append(steps[c.run], c.step)
		}
		for _, b := range x.pays() {
			if k := keyOf(b, now); !keys[k] {
				keys[k] = false
			}
		}
	}
	t.purses = purses{map[purse.Key]*amounts{}, map[int64][]purse.Hold{}}
	for _, k := range slices.SortedFunc(maps.Keys(keys), func(a, b purse.Key) int { return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Day, b.Day)) }) {
		if !keys[k] {
			if len(keys) == 1 {
				break // no order to keep
			}
			if err := t.Spend(k, budget.Amount{}, budget.Amount{}); err != nil { // locks it without a round trip
				return err
			}
			continue
		}
		used, held, err := t.Purse(background, k)
		if err != nil {
			return err
		}
		t.purses.read[k] = &amounts{used, held}
	}
	for run, of := range steps {
		holds, err := t.Holds(run, of...)
		if err != nil {
			return err
		}
		t.purses.holds[run] = holds
	}
	return nil
}

// keyOf is like [purse.KeyOf], with the account as a column has it.
func keyOf(b budget.Shared, at time.Time) purse.Key {
	k := purse.KeyOf(b, at)
	k.Account = Column(k.Account)
	return k
}

// named returns budgets with names that columns can have.
func named(of []budget.Shared) []budget.Shared {
	of = slices.Clone(of)
	for i := range of {
		of[i].Name = Column(of[i].Name)
	}
	return of
}

// reserve reserves what a step claims. Refused says which budget cannot pay.
func (t *transaction) reserve(run int64, c claim) (refused, err error) {
	if c.quote == (purse.Claim{}) {
		return nil, nil
	}
	return purse.Reserve(t.ledger(), run, c.step, c.of, c.quote, t.j.now())
}

// ledger returns the transaction as a [purse.Store].
func (t *transaction) ledger() purse.Store { return purseStore{t.Tx, &t.purses, t} }

type purseStore struct {
	Tx
	*purses
	of *transaction
}

func (s purseStore) Drop(h purse.Hold) error {
	s.of.returned = true
	return s.Tx.Drop(h)
}

func (s purseStore) Purse(k purse.Key) (used, held budget.Amount, err error) {
	if k.Account = Column(k.Account); s.read[k] != nil {
		return s.read[k].used, s.read[k].held, nil
	}
	return s.Tx.Purse(background, k)
}

func (s purseStore) Spend(k purse.Key, used, held budget.Amount) error {
	k.Account = Column(k.Account)
	if a := s.read[k]; a != nil {
		a.used, a.held = purse.Sum(a.used, used), purse.Sum(a.held, held)
	}
	return s.Tx.Spend(k, used, held)
}

func (s purseStore) Holds(run int64, steps ...dag.ID) ([]purse.Hold, error) {
	known, ok := s.holds[run]
	if !ok || len(steps) == 0 {
		return s.Tx.Holds(run, steps...)
	}
	var found []purse.Hold
	for _, h := range known {
		if slices.Contains(steps, h.Step) {
			found = append(found, h)
		}
	}
	return found, nil
}

// settle makes the reservations of steps that have a result, or an attempt that ended, their cost.
func (t *transaction) settle(p *part) error {
	of := p.run.budgets()
	if len(p.settled) == 0 || len(of) == 0 {
		p.settled = nil
		return nil
	}
	store, steps := purseStore{t.Tx, &purses{read: t.purses.read, holds: map[int64][]purse.Hold{}}, t}, make([]dag.ID, len(p.settled))
	for i, s := range p.settled {
		steps[i] = s.step
	}
	holds, err := t.Holds(p.row, steps...)
	if err != nil {
		return err
	}
	store.holds[p.row] = holds
	for _, s := range p.settled {
		if err := purse.Settle(store, p.row, s.step, of, s.used, s.end, t.j.now()); err != nil {
			return err
		}
	}
	p.settled = nil
	return nil
}

// spend settles the cost of the appended rows: it adds them to what their accounts have spent today, and to the
// budgets of their runs.
func (t *transaction) spend() error {
	paid := false
	for _, p := range t.parts {
		paid = paid || p.spent != 0 || len(p.settled) > 0
		if err := t.settle(p); err != nil {
			return err
		}
		usd, own := p.spent, p.run.own()
		if p.spent = 0; usd == 0 || own.Name == "" || purse.Limited(p.run.budgets(), own) {
			continue
		}
		if err := t.ledger().Spend(keyOf(own, t.j.now()), budget.Amount{USD: usd}, budget.Amount{}); err != nil {
			return err
		}
	}
	today := purse.DayOf(t.j.now())
	if !paid || t.j.day == today {
		return nil
	}
	t.j.day = today
	return t.ForgetSpending(today, purse.Kept)
}

// Balance implements [journal.Archive].
func (j *Journal) Balance(ctx context.Context, b budget.Shared, at time.Time) (budget.Balance, error) {
	bal, err := purse.Balance(reads{ctx, j.data}, b, at)
	return bal, j.data.Explain(err)
}

type reads struct {
	context.Context
	Reader
}

func (r reads) Purse(k purse.Key) (used, held budget.Amount, err error) {
	k.Account = Column(k.Account)
	return r.Reader.Purse(r.Context, k)
}

// lapses reports whether no step of a run that ended so can have a result any more, unless the run is resumed.
func lapses(s journal.State) bool { return isOver(s) || s == journal.Canceled }

// budgets returns those on which the run draws, or its outer run.
func (r *run) budgets() []budget.Shared {
	r.mu.Lock()
	of := r.shared
	r.mu.Unlock()
	if len(of) == 0 && r.outer != nil {
		return r.outer.budgets()
	}
	return of
}
