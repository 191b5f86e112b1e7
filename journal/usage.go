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
