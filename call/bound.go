package call

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/terms"
)

// bound returns the maximum cost of the call. It assumes that every candidate fails as late and as often as possible.
func (c *caller) bound(ctx context.Context) budget.Bound {
	r, app := c.resolve(), c.spec.Applicator
	if len(r.faults) > 0 {
		return budget.Unbounded(fmt.Sprintf("the call %s is not valid", c.name))
	}
	req := &Request{Intent: c.spec.Intent, Requires: c.spec.Requires, Turn: c.turn}
	var asked []*entry
	for _, candidate := range r.candidates {
		if candidate.reason == "" {
			asked = append(asked, candidate.entry)
		}
	}
	lanes := make([]budget.Bound, len(asked))
	for i, e := range asked {
		lanes[i] = r.lane(ctx, app, e, req)
	}
	all := r.door.bound(ctx, app).Add(r.dispatched(&c.spec, lanes), (&bar{must: r.agree}).bound(ctx, app))
	if c.spec.CapFrom != nil {
		for name, facts := range app.CheckFacts {
			if facts.Asks != "" {
				all = all.Add(budget.Unbounded(fmt.Sprintf("the capability that %s is given may demand the check %s", c.name, name)))
			}
		}
	}
	return all
}

// dispatched returns the bound of all lanes that the strategy may start.
func (r *resolved) dispatched(s *Spec, lanes []budget.Bound) budget.Bound {
	first := 0
	if s.Dispatch.Strategy == Agreement {
		first = min(s.Dispatch.Agreeing(), len(lanes))
	}
	most := len(lanes)
	if r.fallbackMax >= 0 {
		most = r.fallbackMax + 1
	}
	if s.CapFrom != nil {
		most = 1
	}
	if first == 0 {
		return dearest(lanes, most)
	}
	// The first candidates together count as one candidate. If they cannot be invoked, only the others are invoked.
	return budget.Bound{}.Add(lanes[:first]...).Add(dearest(lanes[first:], most-1)).Or(dearest(lanes[first:], most))
}

// dearest returns the bound of the n most expensive lanes, or of all lanes if their bounds cannot be compared.
func dearest(lanes []budget.Bound, n int) budget.Bound {
	cost := func(b budget.Bound) float64 { usd, _ := b.USD(); return usd }
	if n < len(lanes) && !slices.ContainsFunc(lanes, func(b budget.Bound) bool { _, known := b.USD(); return !known }) {
		lanes = slices.Clone(lanes)
		slices.SortStableFunc(lanes, func(a, b budget.Bound) int { return cmp.Compare(cost(b), cost(a)) })
		lanes = lanes[:max(n, 0)]
	}
	return budget.Bound{}.Add(lanes...)
}

// upTo returns the id of a capability followed, if it may be invoked more than once, by the maximum number of invocations.
func upTo(id string, times int) string {
	if times == 1 {
		return id
	}
	return fmt.Sprintf("%s, asked up to %d times", id, times)
}

// lane returns the bound of all attempts with one candidate.
func (r *resolved) lane(ctx context.Context, app *Applicator, e *entry, req *Request) budget.Bound {
	attempts := r.sameCapMax + 1
	asks, answers := attempts, attempts*(1+r.repairs)
	var repaired budget.Bound
	if r.repairer == nil {
		asks = answers
	} else {
		repaired = r.repairer.bound(ctx, app, req).Times(attempts * r.repairs).Noted("repairs by " + r.repairer.ID)
	}
	own := e.bound(ctx, app, req).Times(asks).Noted(upTo(e.ID, asks))
	checks := r.answer.bound(ctx, app).Times(answers)
	if j := &r.effective.judge; j.on && j.canary > 0 && r.judge != nil {
		judged := answers * j.attempts
		checks = checks.Add(r.judge.bound(ctx, app, &Request{Intent: terms.Grade}).Times(judged).Noted(upTo("the judge "+r.judge.ID, judged)))
	}
	return own.Add(repaired, checks)
}

// bound returns the most that the checks of one value can cost.
func (b *bar) bound(ctx context.Context, app *Applicator) (all budget.Bound) {
	for _, c := range slices.Concat(b.must, b.should) {
		if c.Asks == "" {
			continue
		}
		e := app.Registry.entry(c.Asks)
		if e == nil {
			continue // the check will fail
		}
		all = all.Add(e.bound(ctx, app, &Request{Intent: terms.Check, Requires: Requires{Reply: Value}}).Noted("the check " + c.name))
	}
	return all
}

type boundingKey struct{}

// bound returns the most that one invocation can cost, including the plan or pipeline that answers it.
func (e *entry) bound(ctx context.Context, app *Applicator, req *Request) (most budget.Bound) {
	around, _ := ctx.Value(boundingKey{}).([]*entry)
	if slices.Contains(around, e) {
		return budget.Unbounded(e.ID + " is answered by itself")
	}
	ctx = context.WithValue(ctx, boundingKey{}, append(slices.Clip(around), e))
	switch {
	case !e.runs.IsZero():
		most = e.runs.Bound(ctx, stone.Given{}).Add(budget.AtMost(e.Cost.USD))
	case e.Bound != nil:
		most = e.Bound(ctx, req)
	case e.Quote != nil || e.Cost.Price != (budget.Price{}):
		most = budget.Unbounded(fmt.Sprintf("what %s costs is known only when it is asked", e.ID))
	default:
		most = budget.AtMost(e.Cost.USD)
	}
	if app.Plans != nil && req.Requires.Reply != Value && e.mayReply(Plan) && req.Intent != terms.Grade {
		most = most.Add(budget.Unbounded(fmt.Sprintf("%s may answer with a plan", e.ID)))
	}
	return most
}

// unpriced returns the names of the models without a known price that the call may use, each once. A budget in USD rejects such
// models.
func (c *caller) unpriced(ctx context.Context) (models []string) {
	r := c.resolve()
	entries := []*entry{r.judge, r.repairer}
	for _, candidate := range r.candidates {
		if candidate.reason == "" && !c.spec.open() {
			entries = append(entries, candidate.entry)
		}
	}
	for _, e := range entries {
		if e == nil {
			continue
		}
		if model := e.quote(ctx, &Request{}).Unpriced; model != "" && !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	return models
}

// unpayable adds a finding for each model that the call's own budget rejects because the model's price is unknown.
func (c *caller) unpayable() (found []stone.Finding) {
	if c.spec.Budget.USD == nil {
		return nil
	}
	for _, model := range c.unpriced(context.Background()) {
		err := &budget.UnpricedError{Model: model}
		found = append(found, stone.Finding{Type: "unpriced-model", Message: err.Error()})
	}
	return found
}
