package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// maxExtra is the maximum number of extra turns after a call written as text, and of extra requests after an answer that repeated
// itself.
const maxExtra = 3

// bound returns the most that the agent can cost.
func (a *agent) bound(ctx context.Context, of func(stone.Ashlar) budget.Bound) budget.Bound {
	votes, turns := 0, a.cfg.MaxTurns+1 // one extra turn to repair an answer
	if !a.cfg.Adversary.IsZero() {
		votes = a.maxHealing + 1
		turns += a.maxHealing // one extra turn after each rejected draft
	}
	if len(a.offered) > 0 || !a.OnlySteps() {
		turns += min(maxExtra, turns+1)
	}
	requests := turns
	if w := a.cfg.Repetition(); w != nil && (w.NGram != nil || w.Compression != nil) {
		requests += min(maxExtra, turns)
	}
	all := []budget.Bound{llm.Most(ctx, a.model, &llm.Request{Model: a.cfg.Model, MaxTokens: a.cfg.MaxTokens, Tools: a.told, Params: a.cfg.Params}).
		Times(requests).Noted(fmt.Sprintf("at most %d requests in %d turns", requests, turns))}
	for _, m := range a.cfg.Use {
		switch {
		case m.Wrap == nil:
		case m.Bound == nil:
			all = append(all, budget.Unbounded(fmt.Sprintf("the middleware %s of %s declares no bound", m.Name, a.name)).Noted(""))
		default:
			all = append(all, m.Bound(ctx).Times(turns).Noted("the middleware "+m.Name))
		}
	}
	var call budget.Bound // the most expensive call of a tool
	for _, t := range a.offered {
		if t.runs != nil {
			call = call.Or(of(t.runs.ashlar))
		}
		if t.Bound != nil {
			call = call.Or(t.Bound(ctx).Noted("the tool " + t.Name))
		}
	}
	all = append(all, call.Times(turns).Times(a.cfg.MaxCalls))
	for i, judge := range []stone.Ashlar{a.cfg.Admit, a.cfg.Adversary, a.cfg.Healer} {
		if !judge.IsZero() {
			all = append(all, of(judge).Times([]int{1, votes, votes - 1}[i]))
		}
	}
	return budget.Bound{}.Add(slices.DeleteFunc(all, budget.Bound.Free)...)
}
