package call

import (
	"cmp"
	"context"
	"slices"

	"github.com/stonelayer/stone/internal/redact"
)

// A Verdict is what one check, or the judge, said of an answer or an input.
type Verdict struct {
	By    string   `json:"by"`              // the name of the check, or the capability that judged
	As    string   `json:"as"`              // "must", "should" or "judge"
	State string   `json:"state"`           // "passed", "failed" or "skipped"
	Score *float64 `json:"score,omitempty"` // of a judge that gave one
	Why   string   `json:"why,omitempty"`   // why it failed, or the reasons of the judge
}

// The bounds of the verdicts in a Record. A call has at most mostVerdicts for each attempt, the
// failed ones first, and as many for its input.
const (
	mostVerdicts = 32
	mostWhy      = 300 // bytes of a name or a reason
)

// bounded returns verdicts as a Record keeps them.
func bounded(ctx context.Context, all []Verdict) []Verdict {
	if len(all) > mostVerdicts {
		slices.SortStableFunc(all, func(a, b Verdict) int { return cmp.Compare(a.rank(), b.rank()) })
		all = all[:mostVerdicts:mostVerdicts]
	}
	secrets := redact.From(ctx)
	for i := range all {
		all[i].By = redact.Cut(valid(secrets.Clean(all[i].By)), mostWhy)
		all[i].Why = redact.Cut(secrets.Clean(all[i].Why), mostWhy)
	}
	return all
}

// rank is lower for verdicts that tell more.
func (v *Verdict) rank() int { return slices.Index([]string{"failed", "passed", "skipped"}, v.State) }
