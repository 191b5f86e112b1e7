package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
)

// uncounted returns an error if shared budgets are configured. It is called for a run that is not recorded, because shared
// budgets cannot count such a run.
func (a *app) uncounted() error {
	if conf := a.calls.conf; conf != nil && len(conf.Budgets) > 0 {
		return fmt.Errorf("--no-db: %s has :budgets, which count only runs that are recorded: leave the flag out, or choose another configuration with --config", conf.File)
	}
	return nil
}

// rules returns the configured rules for shared budgets, or nil if there is no configuration.
func (a *app) rules() []budget.Rule {
	if a.calls.conf == nil {
		return nil
	}
	return append([]budget.Rule{}, a.calls.conf.Budgets...)
}

func (a *app) budgets(c *cobra.Command) {
	a.overConfig(c, func(ctx context.Context, conf *config.Config, _ []string) error {
		if len(conf.Budgets) == 0 {
			a.complain("the configuration has no :budgets")
			return nil
		}
		err := a.withStore(ctx, func(s *store) error {
			return a.printBudgets(conf.Budgets, func(b budget.Shared) (budget.Balance, error) { return s.Balance(ctx, b, time.Now()) })
		})
		if none := (noDatabase{}); a.db == "" && errors.As(err, &none) { // nothing has been spent before the first run
			return a.printBudgets(conf.Budgets, func(b budget.Shared) (budget.Balance, error) {
				_, renews := b.Per.Bounds(time.Now())
				return budget.Balance{Shared: b, Renews: renews}, nil
			})
		}
		return err
	})
	a.dbFlag(c.Flags())
	a.jsonFlag(c.Flags(), "a JSON array")
}

func (a *app) printBudgets(rules []budget.Rule, balance func(budget.Shared) (budget.Balance, error)) error {
	found, err := view.Budgets(rules, balance)
	if err != nil {
		return failed("%w", err)
	}
	all := []budget.Balance{}
	rows := newTable("BUDGET", "RUNS", "UNIT", ">USED", ">IN FLIGHT", ">LIMIT", "RENEWED")
	for _, b := range found {
		all = append(all, b.Balance)
		for _, l := range b.Lines() {
			rows.add(text.Line(b.Name), text.Line(b.Runs()), l.Unit, l.Used, l.Held, l.Limit, b.Renewed())
		}
	}
	return a.print(all, rows, a.columns())
}
