package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
)

// mostParts is how many parts of a bound are printed.
const mostParts = 10

// bound returns the most that a run may cost.
func (k *calls) bound(ctx context.Context, p stone.Ashlar, cfg stone.Config) budget.Bound {
	if p.IsZero() {
		return budget.Bound{}
	}
	return p.Bound(llm.WithTable(ctx, k.table), cfg.Given())
}

// printBound prints the most that a run may cost, where the money is, and what has no bound. It warns of a budget that
// is less.
func (a *app) printBound(w io.Writer, b budget.Bound) error {
	if b.String() == "0" && (b.Free() || a.calls.limits.USD == nil) {
		return nil // nothing is known that a budget would be compared with
	}
	line := "A run costs at most " + b.String() + " USD."
	if len(b.Open()) > 0 {
		line = "The cost of a run has no upper bound. What has one costs at most " + b.String() + " USD."
	}
	if _, err := fmt.Fprintln(w, text.Line(line)); err != nil {
		return err
	}
	parts := slices.DeleteFunc(b.Parts(), func(p budget.Part) bool { return p.Bound.String() == "0" })
	for i, p := range parts {
		if i == mostParts {
			fmt.Fprintf(w, "  … and %d more parts\n", len(parts)-i)
			break
		}
		line := fmt.Sprintf("%s  %s", p.Bound, address.Readable(p.Path))
		if p.Note != "" {
			line += ": " + p.Note
		}
		fmt.Fprintln(w, "  "+text.Line(line))
	}
	for _, why := range b.Open() {
		fmt.Fprintln(w, "  unbounded: "+text.Line(why))
	}
	if limit := a.calls.limits.USD; limit != nil {
		if err := b.Fits(*limit); err != nil {
			_, err := fmt.Fprintln(w, text.Line("Warning: "+err.Error()))
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
