package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// UsageOf reads the usage of a step from its record: a budget.Usage in the field "usage"
// of its content, or in the meta of its failure under budget.MetaKey. It is only meant
// for steps that have declared a cost, see budget.Declare: in other contents the field
// has another meaning.
func UsageOf(rec step.Record) budget.Usage {
	var found struct {
		Usage budget.Usage `json:"usage"`
	}
	content := []byte(rec.Content)
	if rec.Failure != nil {
		content = fmt.Appendf(nil, `{"usage":%s}`, cmp.Or(rec.Meta[budget.MetaKey], "{}"))
	}
	if !bytes.Contains(content, []byte(`"usage":{`)) || json.Unmarshal(content, &found) != nil {
		return budget.Usage{}
	}
	return found.Usage.Sane()
}

// Ended reports whether the cost of a step that ended with err, and without a result, is
// known: the account refused it, or the error contains its usage, which Ended returns.
// Declared is budget.Declared of the context of Do. Steps within a step that has declared
// nothing are counted on their own.
func Ended(declared budget.Amount, err error) (used budget.Usage, ok bool) {
	used, ok = budget.CostOf(err)
	if declared == (budget.Amount{}) {
		return budget.Usage{}, ok || budget.Refused(err)
	}
	return used, ok
}

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
