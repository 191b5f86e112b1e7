package view

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
)

// A Budget is the state of a budget that is shared by several runs.
type Budget struct {
	budget.Balance
	Rule budget.Rule
}

// Budgets returns the state of each budget in the rules.
func Budgets(rules []budget.Rule, balance func(budget.Shared) (budget.Balance, error)) (all []Budget, err error) {
	for _, r := range rules {
		b, err := balance(r.Shared)
		if err != nil {
			return nil, err
		}
		all = append(all, Budget{b, r})
	}
	return all, nil
}

// Runs describes which runs draw on the budget.
func (b Budget) Runs() string {
	var words []string
	if b.Rule.Pipeline != "" {
		words = append(words, b.Rule.Pipeline)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Rule.Labels)) {
		words = append(words, name+"="+b.Rule.Labels[name])
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}

// Renewed describes when the budget is renewed.
func (b Budget) Renewed() string {
	if b.Renews.IsZero() {
		return "never"
	}
	return b.Renews.Format("2006-01-02 15:04 UTC")
}

// A BudgetLine contains the amounts of a budget in one unit.
type BudgetLine struct{ Unit, Used, Held, Limit string }

// Lines returns a line for each unit that the budget limits.
func (b Budget) Lines() (all []BudgetLine) {
	usd := func(n float64) string { return money.Exact(math.Round(n*1e9) / 1e9) } // removes rounding errors of sums
	if l := b.Limits.USD; l != nil {
		all = append(all, BudgetLine{"USD", usd(b.Used.USD), usd(b.Held.USD), usd(max(*l, 0))})
	}
	if l := b.Limits.Tokens; l != nil {
		all = append(all, BudgetLine{"tokens", strconv.Itoa(b.Used.Tokens), strconv.Itoa(b.Held.Tokens), strconv.Itoa(max(*l, 0))})
	}
	if l := b.Limits.Roundtrips; l != nil {
		all = append(all, BudgetLine{"requests", strconv.Itoa(b.Used.Roundtrips), strconv.Itoa(b.Held.Roundtrips), strconv.Itoa(max(*l, 0))})
	}
	return all
}
