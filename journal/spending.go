package journal

import (
	"context"
	"strings"

	"github.com/stonelayer/stone/budget"
)

// spending returns the context in which the run is charged to the account of ctx. The
// earlier cost of a resumed run is charged first, once; recorded steps are not charged
// again. Leave is called at the end of the run.
func (r *runner) spending(ctx context.Context) (_ context.Context, leave func(over bool), err error) {
	account := budget.From(ctx)
	if account == nil {
		return ctx, func(bool) {}, nil
	}
	var before budget.Amount
	if r.resumed && !r.doneBefore() { // a run that is done needs nothing more
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return ctx, nil, err
		}
		for _, s := range steps {
			before = before.Add(s.Spent())
			if s.Recorded && s.Declared != (budget.Amount{}) {
				r.paid.Store(bodyOf(s.Path, s.Name), true)
			}
		}
	}
	ctx = budget.WithRecorded(ctx, func(path, step string) bool {
		_, ok := r.paid.Load(body{path, step})
		return ok
	})
	own := account.Run(r.cfg.RunID, before)
	return budget.With(ctx, own), func(over bool) { own.Leave(r.cfg.RunID, over) }, nil
}

// A body identifies a step: the path of the body, and the name of the step.
type body struct{ path, step string }

func bodyOf(path, name string) body {
	return body{path[:max(strings.LastIndexByte(path, '/'), 0)], name}
}
