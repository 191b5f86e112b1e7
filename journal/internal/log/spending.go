package log

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// admit refuses an intent if the run's budgets cannot pay for the step.
func (t *transaction) admit(r *run, i *intent) (refused, err error) {
	of := r.budgets()
	if len(of) == 0 || i.claim == (fleet.Claim{}) {
		return nil, nil
	}
	refused, err = t.j.fleet.Admit(within{t}, fleet.Start{Run: r.id, Step: i.digest, Of: of, Claim: i.claim, Again: i.again}, t.j.now())
	if err == nil && refused == nil {
		t.admitted = append(t.admitted, ended{r.id, i.digest})
	}
	return refused, err
}

// ended identifies a step that starts or ends in this transaction.
type ended struct {
	run  string
	step dag.ID
}

// within is a [fleet.Reader] that reads within a transaction and caches the results. Spending that the transaction adds is
// written at its end; until then it counts as in flight.
type within struct{ *transaction }

func (t within) Spent(k fleet.Key) (sum budget.Amount, err error) {
	k.Account = Column(k.Account)
	sum, known := t.sums[k]
	if known {
		return sum, nil
	}
	if sum, err = t.Tx.Spent(background, k); err != nil {
		return sum, err
	}
	if t.sums == nil {
		t.sums = map[fleet.Key]budget.Amount{}
	}
	t.sums[k] = sum
	return sum, nil
}

func (t within) Outstanding(b budget.Shared) (map[string]budget.Amount, error) {
	if t.open == nil {
		found, err := t.Tx.Outstanding(background)
		if err != nil {
			return nil, err
		}
		t.open = append([]*Outstanding{}, found...)
	}
	return t.j.estimates(t.open, b)
}

// estimates returns, for each run that draws on a budget, the estimated cost of its open batches. The keys are run IDs.
func (j *Journal) estimates(open []*Outstanding, b budget.Shared) (map[string]budget.Amount, error) {
	found := map[string]budget.Amount{}
	account, _ := b.Key(time.Time{})
	for _, n := range open {
		var info struct {
			Budgets []budget.Shared `json:"budgets"`
		}
		var batch owed.Batch
		if err := errors.Join(json.Unmarshal([]byte(cmp.Or(string(n.Info), "{}")), &info), json.Unmarshal(n.Data, &batch)); err != nil || !unbroken(n.Seal, n.Data, true, n.fields()...) {
			return nil, &journal.DamageError{Where: j.data.Name(), Run: n.ID, Reason: "was changed in the table batches"}
		}
		for _, of := range named(info.Budgets) {
			if name, _ := of.Key(time.Time{}); name == account {
				found[n.ID] = found[n.ID].Add(batch.Estimate)
			}
		}
	}
	return found, nil
}

// end records that an attempt ends in this transaction, with a result or with an error whose cost is known. A request that is
// waiting for a batch stays in flight.
func (t *transaction) end(p *part, step dag.ID, why error) {
	if why == nil || !errors.Is(why, kind.Waiting) {
		p.paid.Roundtrips += t.j.fleet.Most(p.run.id, step).Roundtrips
	} else if _, batched := fault.Sent(why); batched {
		return
	}
	t.over = append(t.over, ended{p.run.id, step})
}

// spend adds the cost of the appended rows to the spending of their accounts and budgets. This is the last change in a
// transaction, and all processes make these changes in the same order, to avoid deadlocks.
func (t *transaction) spend() error {
	now, all := t.j.now(), map[fleet.Key]budget.Amount{}
	for _, p := range t.parts {
		if p.paid == (budget.Amount{}) {
			continue
		}
		keys := map[fleet.Key]bool{}
		for _, b := range p.run.payers() {
			k := fleet.KeyOf(b, now)
			k.Account = Column(k.Account)
			if keys[k] {
				continue
			}
			keys[k] = true
			sum := all[k]
			all[k] = budget.Amount{Roundtrips: sum.Roundtrips + p.paid.Roundtrips, Tokens: sum.Tokens + p.paid.Tokens, USD: sum.USD + p.paid.USD}
		}
		p.paid = budget.Amount{}
	}
	if len(all) == 0 {
		return nil
	}
	for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b fleet.Key) int { return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Day, b.Day)) }) {
		if err := t.Spend(k, all[k]); err != nil {
			return err
		}
	}
	today := fleet.DayOf(now)
	if t.j.day == today {
		return nil
	}
	t.j.day = today
	return t.ForgetSpending(today, fleet.Kept)
}

// Balance implements [journal.Journal].
func (j *Journal) Balance(ctx context.Context, b budget.Shared, at time.Time) (budget.Balance, error) {
	bal, err := j.fleet.Balance(reads{ctx, j}, named([]budget.Shared{b})[0], at)
	bal.Shared = b
	return bal, j.data.Explain(err)
}

// reads is a [fleet.Reader] that reads outside of transactions.
type reads struct {
	ctx context.Context
	*Journal
}

func (r reads) Spent(k fleet.Key) (budget.Amount, error) {
	k.Account = Column(k.Account)
	return r.data.Spent(r.ctx, k)
}

func (r reads) Outstanding(b budget.Shared) (map[string]budget.Amount, error) {
	open, err := r.data.Outstanding(r.ctx)
	if err != nil {
		return nil, err
	}
	return r.estimates(open, b)
}

// budgets returns the budgets of the run, or, if it has none, of its outer run.
func (r *run) budgets() []budget.Shared {
	r.mu.Lock()
	of := r.shared
	r.mu.Unlock()
	if len(of) == 0 && r.outer != nil {
		return r.outer.budgets()
	}
	return of
}

// payers returns the run's budgets and the daily budget of its account.
func (r *run) payers() []budget.Shared {
	of := r.budgets()
	if payer := r.payer(); payer != "" {
		of = append(slices.Clip(of), budget.Shared{Name: Column(payer), Per: budget.Day, Payer: true})
	}
	return of
}

// named returns the budgets with their names converted to Columns.
func named(of []budget.Shared) []budget.Shared {
	of = slices.Clone(of)
	for i := range of {
		of[i].Name = Column(of[i].Name)
	}
	return of
}
