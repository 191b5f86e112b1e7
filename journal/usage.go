package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// Usage is what a step or a run has used up.
type Usage struct {
	InputTokens  int     `json:"input_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	Cost         float64 `json:"cost,omitempty"` // in the currency of whoever computed it
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.Cost + v.Cost}
}

// UsageOf reads what a step has used up out of its record: what its content has in
// the field "usage", or in that of its field "reply", or what the meta of its
// failure has under budget.MetaKey. It is for steps that have declared what they
// may cost, see budget.Declare: in any other content these fields mean something
// else.
func UsageOf(rec step.Record) Usage {
	type holder struct {
		Usage Usage `json:"usage"`
	}
	var found struct {
		holder
		Reply holder `json:"reply"`
	}
	content := []byte(rec.Content)
	if rec.Failure != nil {
		content = fmt.Appendf(nil, `{"usage":%s}`, cmp.Or(rec.Meta[budget.MetaKey], "{}"))
	}
	if !bytes.Contains(content, []byte(`"usage":{`)) || json.Unmarshal(content, &found) != nil {
		return Usage{}
	}
	return found.Usage.Add(found.Reply.Usage)
}

// Spent returns what a step has cost: what its attempts have used up and, for each
// attempt that has left no result, what it had declared.
func (s Step) Spent() budget.Amount {
	lost := s.Declared.Times(s.PossiblyPaid())
	return budget.Amount{
		Roundtrips: s.Declared.Times(s.Attempts).Roundtrips,
		Tokens:     s.Usage.InputTokens + s.Usage.OutputTokens + lost.Tokens,
		USD:        s.Usage.Cost + lost.USD,
	}
}
