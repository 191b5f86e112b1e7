package journal

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/purse"
)

// memoryPurses is a [purse.Store]. Its methods never fail.
type memoryPurses struct {
	runs  int64 // numbers them
	of    map[purse.Key]memoryPurse
	holds map[int64]map[dag.ID][]purse.Hold // by run and step
	lines purse.Lines
	day   int64 // on which old days were forgotten last
}

type memoryPurse struct{ used, held budget.Amount }

func (m *memoryPurses) Purse(k purse.Key) (used, held budget.Amount, err error) {
	return m.of[k].used, m.of[k].held, nil
}

func (m *memoryPurses) Spend(k purse.Key, used, held budget.Amount) error {
	if m.of == nil {
		m.of = map[purse.Key]memoryPurse{}
	}
	m.of[k] = memoryPurse{purse.Sum(m.of[k].used, used), purse.Sum(m.of[k].held, held)}
	return nil
}

func (m *memoryPurses) Holds(run int64, steps ...dag.ID) (found []purse.Hold, err error) {
	for id, holds := range m.holds[run] {
		if len(steps) == 0 || slices.Contains(steps, id) {
			found = append(found, holds...) // a copy: Hold and Drop change the others
		}
	}
	return found, nil
}

func (m *memoryPurses) Hold(h purse.Hold) error {
	if m.holds == nil {
		m.holds = map[int64]map[dag.ID][]purse.Hold{}
	}
	if m.holds[h.Run] == nil {
		m.holds[h.Run] = map[dag.ID][]purse.Hold{}
	}
	others := slices.DeleteFunc(m.holds[h.Run][h.Step], func(o purse.Hold) bool { return o.Account == h.Account })
	m.holds[h.Run][h.Step] = append(others, h)
	return nil
}

func (m *memoryPurses) Drop(h purse.Hold) error {
	if delete(m.holds[h.Run], h.Step); len(m.holds[h.Run]) == 0 {
		delete(m.holds, h.Run)
	}
	m.lines.Returned()
	return nil
}

// forget forgets what was spent on days that are no longer kept.
func (m *memoryPurses) forget(today int64) {
	if m.day == today {
		return
	}
	m.day = today
	last := int64(0) // before today: a clock that is wrong for a while removes nothing
	for k := range m.of {
		if k.Day < today {
			last = max(last, k.Day)
		}
	}
	maps.DeleteFunc(m.of, func(k purse.Key, _ memoryPurse) bool { return k.Day < last-purse.Kept })
}

// budgets returns those on which the run draws.
func (r *memoryRun) budgets() []budget.Shared {
	if len(r.info.Budgets) == 0 && r.outer != nil {
		r = r.outer
	}
	return r.info.Budgets
}

// spend adds to what the account of a run has spent today, unless the run draws on a limit of it.
func (m *Memory) spend(r *memoryRun, usd float64) {
	m.purses.forget(purse.DayOf(time.Now()))
	limits := r.budgets()
	if r.info.Account == "" && r.outer != nil {
		r = r.outer
	}
	own := budget.Shared{Name: r.info.Account, Per: budget.Day, Payer: true}
	if own.Name != "" && usd != 0 && !purse.Limited(limits, own) {
		_ = m.purses.Spend(purse.KeyOf(own, time.Now()), budget.Amount{USD: usd}, budget.Amount{})
	}
}

// Balance implements [Archive].
func (m *Memory) Balance(_ context.Context, b budget.Shared, at time.Time) (budget.Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return purse.Balance(&m.purses, b, at)
}

// lapses reports whether steps of a run that ended so cannot have a result any more unless it is resumed, which
// starts them anew: workers may still do steps of a run that is drained or waits.
func (s State) lapses() bool { return s == Done || s == Failed || s == Canceled }
