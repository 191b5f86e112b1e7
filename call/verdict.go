package call

import (
	"cmp"
	"context"
	"slices"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/redact"
)

// A Verdict is the result of one check, or of the judge, for an answer or an input.
type Verdict struct {
	By    string   `json:"by"`              // the name of the check, or the id of the judge
	As    string   `json:"as"`              // "must", "should" or "judge"
	State string   `json:"state"`           // "passed", "failed", "broken" or "skipped"
	Score *float64 `json:"score,omitempty"` // only of a judge
	Why   string   `json:"why,omitempty"`   // the reason of a failure, or the reasons of the judge
}

// Limits of the verdicts in a Record. If an attempt or an input has more than mostVerdicts, the
// failed ones are kept first.
const (
	mostVerdicts = 32
	mostWhy      = 300 // bytes of a name or a reason
)

// bounded returns verdicts within the limits of a Record, without secrets. It changes the slice.
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

// rank orders verdicts by how informative they are.
func (v *Verdict) rank() int {
	return slices.Index([]string{"broken", "failed", "passed", "skipped"}, v.State)
}
