package journal

import (
	"context"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/step"
)

// spending returns a context in which the run's steps are charged to the account in ctx. If the run is resumed, spending first
// charges its cost so far; recorded steps are then not charged again. The caller must call leave at the end of the run.
func (r *runner) spending(ctx context.Context) (_ context.Context, leave func(over bool), err error) {
	ctx = budget.WithOutputs(ctx)
	account := budget.From(ctx)
	if account == nil {
		return ctx, func(bool) {}, nil
	}
	var earlier budget.Earlier
	var used []spent
	if r.resumed && !r.doneBefore() { // a run that is done costs nothing more
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return ctx, nil, err
		}
		r.left.load(steps)
		for _, s := range steps {
			earlier.Spent, earlier.Held = earlier.Spent.Add(s.Spent()), earlier.Held.Add(s.Possible)
			if s.Usage != (budget.Usage{}) {
				used = append(used, spent{s.Path, s.Usage})
				at := bodyOf(s.Path, s.Name)
				budget.Observe(ctx, at.path, at.step, s.Usage)
			}
			if s.Recorded && s.Declared != (budget.Amount{}) {
				place, _ := address.Attempts(s.Path)
				r.paid.Store(bodyOf(place, s.Name), true)
			}
		}
	}
	earlier.Below = under(used)
	own := account.Run(r.cfg.RunID, earlier)
	return budget.With(ctx, own), func(over bool) { own.Leave(r.cfg.RunID, over) }, nil
}

// spent is the usage of the step at path.
type spent struct {
	path string
	budget.Usage
}

// under returns a function that returns the total usage of the steps below a path.
func under(steps []spent) func(path string) budget.Usage {
	slices.SortFunc(steps, func(a, b spent) int { return strings.Compare(a.path, b.path) })
	return func(path string) (sum budget.Usage) {
		path += "/"
		first, _ := slices.BinarySearchFunc(steps, path, func(s spent, path string) int { return strings.Compare(s.path, path) })
		for _, s := range steps[first:] {
			if !strings.HasPrefix(s.path, path) {
				break
			}
			sum = sum.Add(s.Usage)
		}
		return sum
	}
}

// Has implements an optional method of step.Recorder: it reports whether another process has recorded the result of a costly step
// of this run. The result may belong to a different attempt at the leaf. If it cannot be used, the step reserves its cost when it
// starts.
func (r *recorder) Has(key step.Key) bool {
	place, _ := address.Attempts(key.Path)
	_, ok := r.paid.Load(bodyOf(place, key.Name))
	return ok
}

// A body identifies a step by the path of its body and its name.
type body struct{ path, step string }

func bodyOf(path, name string) body {
	return body{path[:max(strings.LastIndexByte(path, '/'), 0)], name}
}

// Spent returns the cost of a step: the usage of its attempts, plus the declared cost of each attempt without a result.
func (s Step) Spent() budget.Amount {
	spent := s.Total().Amount()
	spent.Roundtrips = s.Declared.Times(s.Attempts).Roundtrips
	return spent
}

// Total returns the cost of the step, without its round trips.
func (s Step) Total() budget.Total { return budget.Total{Usage: s.Usage, Possible: s.Possible} }

// Total returns the number of steps with a result, and the cost of all steps.
func Total(steps []Step) (n int, cost budget.Total) {
	for i := range steps {
		s := &steps[i]
		cost = cost.Add(s.Total())
		if s.Recorded && s.Kind != inputStep && s.Kind != step.Value {
			n++
		}
	}
	return n, cost
}
