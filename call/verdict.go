package call

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/redact"
)

// A Verdict is the result of one check, or of the judge, for an answer or an input.
type Verdict struct {
	By    string   `json:"by"`              // the name of the check, or the id of the judge
	As    string   `json:"as"`              // "must", "should" or "judge"
	State string   `json:"state"`           // "passed", "failed", "broken" or "skipped"
	Score *float64 `json:"score,omitempty"` // only for a judge
	Why   string   `json:"why,omitempty"`   // the reason for a failure, or the judge's reasons
}

// Limits of the verdicts in a Record. If an attempt or an input has more than mostVerdicts verdicts, the failed ones are kept
// first.
const (
	mostVerdicts = 32
	mostWhy      = 300 // the maximum length of a name or a reason, in bytes
)

// bounded returns verdicts within the limits of a Record and without secrets. It modifies the slice all.
func bounded(ctx context.Context, all []Verdict) []Verdict {
	if len(all) > mostVerdicts {
		slices.SortStableFunc(all, func(a, b Verdict) int { return cmp.Compare(a.rank(), b.rank()) })
		all = all[:mostVerdicts:mostVerdicts]
	}
	secrets := redact.From(ctx)
	for i := range all {
		all[i].By = bounds.Cut(valid(secrets.Clean(all[i].By)), mostWhy)
		all[i].Why = bounds.Cut(secrets.Clean(all[i].Why), mostWhy)
	}
	return all
}

// rank returns the position of a verdict in the order from most to least informative.
func (v *Verdict) rank() int {
	return slices.Index([]string{"broken", "failed", "passed", "skipped"}, v.State)
}

// facts returns an iterator over the facts that describe the call to people; see tree.Facts. They do not include the capabilities
// that would be invoked, which depend on the run; see Applicator.Candidates.
func (c *caller) facts() iter.Seq2[string, string] {
	s := &c.spec
	candidates := strings.Join(s.Dispatch.Candidates, ", ")
	if s.open() {
		candidates = "named by a value of the run"
	}
	facts := [][2]string{
		{"intent", s.Intent}, {"tool", s.Tool}, {"capability", s.Cap},
		{"candidates", candidates},
	}
	return func(yield func(string, string) bool) {
		for _, f := range facts {
			if f[1] != "" && !yield(f[0], f[1]) {
				return
			}
		}
		s.Admit.facts(yield)
	}
}
