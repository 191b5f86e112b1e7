package cli

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
)

// uncounted refuses to run without a record where budgets over several runs are configured.
func (a *app) uncounted() error {
	if conf := a.calls.conf; conf != nil && len(conf.Budgets) > 0 {
		return fmt.Errorf("--no-db: %s has :budgets, which count only runs that are recorded: leave the flag out, or choose another configuration with --config", conf.File)
	}
	return nil
}

// rules returns the configured budgets over several runs, and nil without a configuration.
func (a *app) rules() []budget.Rule {
	if a.calls.conf == nil {
		return nil
	}
	return append([]budget.Rule{}, a.calls.conf.Budgets...)
}

func (a *app) budgets() *cobra.Command {
	var db string
	var asJSON bool
	c := &cobra.Command{
		Use:   "budgets",
		Short: "Show usage and reservations of shared budgets",
		Long: "Budgets shows the :budgets of the configuration in their present day or month (UTC), over all runs of the\n" +
			"database. RESERVED is the most that running steps may cost, and what steps may have cost whose process\n" +
			"died: it becomes used when their run is resumed or ends.",
		Example:           a.example("budgets", "budgets --json"),
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := a.configured()
			if err != nil {
				return err
			}
			defer a.closeCalls()
			if len(conf.Budgets) == 0 {
				a.complain("the configuration has no :budgets")
				return nil
			}
			err = a.withStore(c.Context(), db, func(s *store) error {
				return a.printBudgets(conf.Budgets, asJSON, func(b budget.Shared) (budget.Balance, error) { return s.Balance(c.Context(), b, time.Now()) })
			})
			if none := (noDatabase{}); db == "" && errors.As(err, &none) { // nothing is spent before the first run
				return a.printBudgets(conf.Budgets, asJSON, func(b budget.Shared) (budget.Balance, error) {
					_, renews := b.Per.Bounds(time.Now())
					return budget.Balance{Shared: b, Renews: renews}, nil
				})
			}
			return err
		},
	}
	dbFlag(c.Flags(), &db)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.Flags().StringVar(&a.calls.config, "config", "", "read the configuration from `FILE` instead of the nearest .stone/stone.edn")
	return c
}

func (a *app) printBudgets(rules []budget.Rule, asJSON bool, balance func(budget.Shared) (budget.Balance, error)) error {
	all := []budget.Balance{}
	rows := []column{{name: "BUDGET"}, {name: "RUNS"}, {name: "UNIT"}, {name: "USED", right: true}, {name: "RESERVED", right: true}, {name: "LIMIT", right: true}, {name: "RENEWED"}}
	for _, r := range rules {
		b, err := balance(r.Shared)
		if err != nil {
			return failed("%w", err)
		}
		all = append(all, b)
		add := func(unit, used, held, limit string) {
			renewed := "never"
			if !b.Renews.IsZero() {
				renewed = b.Renews.Format("2006-01-02 15:04 UTC")
			}
			for i, cell := range []string{text.Line(b.Name), text.Line(drawing(r)), unit, used, held, limit, renewed} {
				rows[i].cells = append(rows[i].cells, cell)
			}
		}
		if l := b.Limits.USD; l != 0 {
			add("USD", usd(b.Used.USD), usd(b.Held.USD), usd(max(l, 0)))
		}
		if l := b.Limits.Tokens; l != 0 {
			add("tokens", strconv.Itoa(b.Used.Tokens), strconv.Itoa(b.Held.Tokens), strconv.Itoa(max(l, 0)))
		}
		if l := b.Limits.Roundtrips; l != 0 {
			add("requests", strconv.Itoa(b.Used.Roundtrips), strconv.Itoa(b.Held.Roundtrips), strconv.Itoa(max(l, 0)))
		}
	}
	if asJSON {
		return output(printJSON(a.Stdout, all))
	}
	return output(printTable(a.Stdout, a.columns(), rows))
}

// usd prints an amount without the rounding errors of sums.
func usd(n float64) string { return money.Exact(math.Round(n*1e9) / 1e9) }

// drawing says which runs draw on a budget.
func drawing(r budget.Rule) string {
	var words []string
	if r.Pipeline != "" {
		words = append(words, r.Pipeline)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		words = append(words, name+"="+r.Labels[name])
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}
