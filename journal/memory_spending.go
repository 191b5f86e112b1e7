package journal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/flight"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/kind"
)

// memorySpending is what is recorded of budgets, and in flight.
type memorySpending struct {
	flight flight.Flight
	sums   map[flight.Key]budget.Amount
	day    int64 // on which old days were forgotten last
}

// memorySums is a [flight.Reader].
type memorySums struct{ *memory }

func (m memorySums) Spent(k flight.Key) (budget.Amount, error) { return m.spending.sums[k], nil }

func (m memorySums) Outstanding(b budget.Shared) (map[string]budget.Amount, error) {
	found := map[string]budget.Amount{}
	account, _ := b.Key(time.Time{})
	for _, r := range m.order {
		for _, of := range r.budgets() {
			if name, _ := of.Key(time.Time{}); name != account {
				continue
			}
			for _, batch := range r.owed.batches {
				if batch.State != owed.Ended {
					found[r.info.ID] = found[r.info.ID].Add(batch.Estimate)
				}
			}
		}
	}
	return found, nil
}

// forget forgets what was spent on days that are no longer kept.
func (m *memorySpending) forget(today int64) {
	if m.day == today {
		return
	}
	m.day = today
	last := int64(0) // before today: a clock that is wrong for a while removes nothing
	for k := range m.sums {
		if k.Day < today {
			last = max(last, k.Day)
		}
	}
	maps.DeleteFunc(m.sums, func(k flight.Key, _ budget.Amount) bool { return k.Day < last-flight.Kept })
}

// budgets returns those on which the run draws.
func (r *memoryRun) budgets() []budget.Shared {
	if len(r.info.Budgets) == 0 && r.outer != nil {
		r = r.outer
	}
	return r.info.Budgets
}

// spend adds to the sums of a run's budgets, and of everything that its account spends on a day.
func (m *Memory) spend(r *memoryRun, more budget.Amount) {
	now, of, keys := time.Now(), r.budgets(), map[flight.Key]bool{}
	m.spending.forget(flight.DayOf(now))
	if more == (budget.Amount{}) {
		return
	}
	if r.info.Account == "" && r.outer != nil {
		r = r.outer
	}
	if r.info.Account != "" {
		of = append(slices.Clip(of), budget.Shared{Name: r.info.Account, Per: budget.Day, Payer: true})
	}
	if m.spending.sums == nil {
		m.spending.sums = map[flight.Key]budget.Amount{}
	}
	for _, b := range of {
		if k := flight.KeyOf(b, now); !keys[k] {
			keys[k] = true
			m.spending.sums[k] = flight.Sum(m.spending.sums[k], more)
		}
	}
}

// ended pays for an attempt of a step with a result, or an error whose cost is known. A request that waits for a batch stays
// in flight.
func (m *Memory) ended(s *memoryStep, used budget.Usage, why error) {
	cost, lands := used.Sane().Amount(), true
	if errors.Is(why, kind.Waiting) {
		_, batched := fault.Sent(why)
		lands = !batched
	} else {
		cost.Roundtrips = m.spending.flight.Most(s.run.info.ID, s.digest).Roundtrips
	}
	m.spend(s.run, cost)
	if lands {
		m.spending.flight.End(s.run.info.ID, s.digest)
	}
}

// Balance implements [Archive].
func (m *Memory) Balance(_ context.Context, b budget.Shared, at time.Time) (budget.Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spending.flight.Balance(memorySums{&m.memory}, b, at)
}
