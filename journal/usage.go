package journal

import (
	"bytes"
	"encoding/json"
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

// UsageIn reads the usage out of the content of a step: what stands in its field
// "usage", or in that of its field "reply", as agents write it. The fields of the
// usage are those of Usage; what is not there or is no number counts as nothing.
func UsageIn(content []byte) Usage {
	if !bytes.Contains(content, []byte(`"usage":{`)) {
		return Usage{}
	}
	type holder struct {
		Usage Usage `json:"usage"`
	}
	var found struct {
		holder
		Reply holder `json:"reply"`
	}
	// Content in which these fields mean something else has no usage.
	if json.Unmarshal(content, &found) != nil {
		return Usage{}
	}
	return found.Usage.Add(found.Reply.Usage)
}
