package journal

import (
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// Spent returns the cost of a step: the usage of its attempts and, for each attempt
// without a result, its declared cost.
func (s Step) Spent() budget.Amount {
	spent := s.Total().Amount()
	spent.Roundtrips = s.Declared.Times(s.Attempts).Roundtrips
	return spent
}

// Total returns the cost of a step without its round trips.
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
