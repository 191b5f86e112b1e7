package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// UsageOf reads what a step has used up out of its record: a budget.Usage in the field
// "usage" of its content, or in the meta of its failure under budget.MetaKey. It is for
// steps that have declared what they may cost, see budget.Declare: in any other content
// the field means something else.
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

// Ended reports whether the work of a step that ended with err, and has no result, is
// known not to be paid beyond the usage that it returns: the account refused it, or the
// error says what it has cost. Declared is budget.Declared of the context of Do. What is
// within a step that has declared nothing is counted there.
func Ended(declared budget.Amount, err error) (used budget.Usage, ok bool) {
	used, ok = budget.CostOf(err)
	if declared == (budget.Amount{}) {
		return budget.Usage{}, ok || budget.Refused(err)
	}
	return used, ok
}

// Spent returns what a step has cost: what its attempts have used up and, for each
// attempt that has left no result, what it had declared.
func (s Step) Spent() budget.Amount {
	lost := s.Declared.Times(s.PossiblyPaid())
	return budget.Amount{
		Roundtrips: s.Declared.Times(s.Attempts).Roundtrips,
		Tokens:     s.Usage.Tokens() + lost.Tokens,
		USD:        s.Usage.USD + lost.USD,
	}
}
