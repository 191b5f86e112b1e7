package call

import (
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// printed is what can change the answer of a call and is not seen in its name and
// its queries. Budget and candidates are not in it: an answer that was paid for
// stands when more may be spent, or when others could be asked.
type printed struct {
	Intent   string   `json:"intent"`
	Cap      string   `json:"cap"`
	Tool     string   `json:"tool"`
	Requires Requires `json:"requires"`
	Dispatch Dispatch `json:"dispatch"`
	Done     Done     `json:"done"` // with what the policy adds
	Effects  []string `json:"effects"`
	ScoreMin float64  `json:"score-min"`
	Judge    string   `json:"judge"`
}

// Fingerprint is a part of the fingerprint of the leaf.
func (c *caller) Fingerprint() []byte {
	s := &c.spec
	p := printed{Intent: s.Intent, Cap: s.Cap, Tool: s.Tool, Requires: s.Requires, Dispatch: s.Dispatch, Done: s.Done, Effects: s.Effects}
	if s.Applicator != nil {
		e := s.Applicator.Policy.resolve(s)
		p.Done, p.ScoreMin, p.Judge = e.done, e.scoreMin, fmt.Sprintf("%+v", e.judge)
	}
	data, err := canon.Append(nil, p)
	if err != nil { // a number that JSON has not, which Check reports
		return fmt.Appendf(nil, "%+v", p)
	}
	return data
}

// Render returns the parts of the request that are made of the DAG. They are a
// part of the keys of the leaf.
func (c *caller) Render(d dag.DAG) ([]byte, error) {
	var parts []JSON
	for _, from := range []dag.Reader[any]{c.spec.Input, c.spec.Context, c.spec.Constraints} {
		part, _, err := readPart(from, d)
		if err != nil {
			return nil, err
		}
		if part == nil {
			part = JSON("null")
		}
		parts = append(parts, part)
	}
	return canon.Append(nil, parts)
}
