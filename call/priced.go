package call

import (
	"context"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
)

// unpriced returns the models without a known price that the call may ask, each once. A
// budget in USD rejects them.
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

// unpayable reports the models that the call's own budget cannot pay, because their price
// is unknown.
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
