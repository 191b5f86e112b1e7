package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/llm"
)

// bound returns the most that a run may cost.
func (k *calls) bound(ctx context.Context, p stone.Ashlar, cfg stone.Config) budget.Bound {
	if p.IsZero() {
		return budget.Bound{}
	}
	return p.Bound(llm.WithTable(ctx, k.table), cfg.Given())
}

// printBound prints the most that a run may cost. It warns of a budget that is less.
func (a *app) printBound(w io.Writer, b budget.Bound) error {
	p := view.PriceOf(b, a.calls.limits.USD)
	lines := []string{text.Line(p.Line)}
	for _, part := range p.Parts {
		lines = append(lines, "  "+text.Line(part))
	}
	for _, line := range append(lines, text.Line(p.Warning)) {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// mustFit refuses a run that may cost more than its budget.
func (a *app) mustFit(ctx context.Context, p stone.Ashlar, cfg stone.Config) error {
	if a.calls.limits.USD == nil {
		return fmt.Errorf("--must-fit needs a budget: add --max-usd, or :max-usd to :budget in .stone/stone.edn")
	}
	if err := a.calls.bound(ctx, p, cfg).Fits(*a.calls.limits.USD); err != nil {
		return failed("%w", err)
	}
	return nil
}
