package call

import (
	"slices"

	"github.com/stonelayer/stone/internal/grants"
)

// Candidates calls yield for the capabilities that may answer and for the tools that their plans may use. Package marks uses it.
func (c *caller) Candidates(yield func(id string, needs []string) bool) {
	r, app := c.resolve(), c.spec.Applicator
	if len(r.faults) > 0 {
		return
	}
	for _, candidate := range r.candidates {
		e := candidate.entry
		if e == nil || candidate.reason != "" {
			continue
		}
		if !yield(e.ID, e.Needs) {
			return
		}
		if app.Plans == nil || c.spec.Requires.Reply == Value || !e.mayReply(Plan) || app.Tools == nil {
			continue
		}
		for _, t := range app.Tools.order {
			if len(grants.Missing(t.Needs, e.given(&c.spec))) == 0 && !yield(t.ID, t.Needs) {
				return
			}
		}
	}
}

// Checks returns the names of the checks that an answer must pass.
func (c *caller) Checks() (names []string) {
	if r := c.resolve(); len(r.faults) == 0 {
		for _, check := range slices.Concat(r.answer.must, r.agree) {
			names = append(names, check.name)
		}
	}
	return names
}
