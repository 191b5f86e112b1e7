package journal

import (
	"context"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// requests contains the steps of a resumed run that have sent requests to models; see package past.
type requests struct {
	once  sync.Once
	steps []Step
	err   error
}

// settleWithin settles the requests that were sent within a recorded leaf, because the leaf's body does not run again.
func (r *runner) settleWithin(ctx context.Context, leaf string) error {
	if !r.resumed || past.Of(ctx) == nil {
		return nil
	}
	all := &r.requests
	all.once.Do(func() {
		for s, err := range r.journal.EachStep(r.life, r.cfg.RunID) {
			if err != nil {
				all.err = err
				return
			}
			if s.Recorded && s.Meta[terms.Request] != "" {
				all.steps = append(all.steps, s)
			}
		}
	})
	for _, s := range all.steps {
		if !address.Within(s.Path, leaf) {
			continue
		}
		rec := step.Record{Meta: s.Meta, Replayed: true}
		if s.Failure != "" {
			rec.Failure = &dag.FailureContent{Kind: kind.Kind(s.Failure), Reason: s.Reason}
		}
		past.Settle(ctx, rec, s.Declared != (budget.Amount{}))
	}
	return all.err
}
