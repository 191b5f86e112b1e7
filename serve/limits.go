package serve

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// purse returns the shared budget that represents a caller's daily limit.
func purse(owner string, usdADay *float64) budget.Shared {
	return budget.Shared{Name: owner, Per: budget.Day, Payer: true, Limits: budget.Limits{USD: usdADay}}
}

// shared returns the budgets of the rules, without duplicates.
func shared(rules []budget.Rule) (all []budget.Shared) {
	for _, r := range rules {
		if !slices.ContainsFunc(all, func(o budget.Shared) bool { return reflect.DeepEqual(o, r.Shared) }) {
			all = append(all, r.Shared)
		}
	}
	return all
}

// drawn returns the budgets that a run is charged to. For a child run, they include the budgets of its parent if both have the
// same journal and tenant. The result is never nil, so that a resumed run uses the budgets of this server.
func (s *Server) drawn(ctx context.Context, pipeline string, labels map[string]string, owner string, usdADay *float64) ([]budget.Shared, error) {
	of := budget.Drawn(s.cfg.Budgets, pipeline, labels)
	if usdADay != nil && owner != "" {
		of = append(of, purse(owner, usdADay))
	}
	id := labels[journal.Parent]
	if id == "" {
		return of, nil
	}
	parent, err := s.exactly(ctx, id)
	if errors.Is(err, journal.ErrNoRun) || labels[tenantLabel] != "" && parent.Labels[tenantLabel] != labels[tenantLabel] {
		return of, nil
	}
	for _, b := range parent.Budgets {
		if !slices.ContainsFunc(of, func(o budget.Shared) bool { return o.Name == b.Name && o.Per == b.Per && o.Payer == b.Payer }) {
			of = append(of, b)
		}
	}
	return of, err
}

// draws sets the budgets of a run, or returns an error if the run's caller has spent its daily limit.
func (s *Server) draws(ctx context.Context, t *task) (err error) {
	if !t.keep.Resume {
		t.source.USDADay = t.who.USDADay
		err = s.solvent(ctx, t.who.Name, t.who.USDADay)
	}
	if err == nil {
		t.keep.Budgets, err = s.drawn(ctx, t.Name, t.keep.Labels, t.source.Owner, t.source.USDADay)
	}
	return err
}

// budgets returns the budgets that a caller may see: all budgets or, for a caller with a tenant, those whose rules all name this
// tenant.
func (s *Server) budgets(ctx context.Context, who Principal) ([]view.Budget, error) {
	rules := s.cfg.Budgets
	if who.Tenant != "" {
		rules = slices.DeleteFunc(slices.Clone(rules), func(r budget.Rule) bool {
			return slices.ContainsFunc(s.cfg.Budgets, func(other budget.Rule) bool {
				return other.Name == r.Name && other.Labels[tenantLabel] != who.Tenant
			})
		})
	}
	now := time.Now()
	return view.Budgets(rules, func(b budget.Shared) (budget.Balance, error) { return s.cfg.Journal.Balance(ctx, b, now) })
}

// listBudgets replies with the budgets that several runs share and with the caller's daily limit.
func (s *Server) listBudgets(w http.ResponseWriter, r *http.Request, who Principal) error {
	all, err := s.budgets(r.Context(), who)
	if err != nil {
		return err
	}
	out := api.Budgets{Budgets: []api.SharedBudget{}}
	for _, b := range all {
		out.Budgets = append(out.Budgets, api.SharedBudget{Balance: b.Balance, Pipeline: b.Rule.Pipeline, Labels: b.Rule.Labels})
	}
	if who.USDADay != nil && who.Name != "" {
		own, err := s.cfg.Journal.Balance(r.Context(), purse(who.Name, who.USDADay), time.Now())
		if err != nil {
			return err
		}
		out.Budgets = append(out.Budgets, api.SharedBudget{Balance: own})
	}
	return reply(w, http.StatusOK, out)
}

// spentError reports that a caller has spent its daily limit. A retry on the next day can succeed.
type spentError struct{ *api.Problem }

func (e spentError) Unwrap() error { return e.Problem }

// solvent returns a spentError if a caller has spent its daily limit.
func (s *Server) solvent(ctx context.Context, owner string, usd *float64) error {
	if usd == nil {
		return nil
	}
	b, err := s.cfg.Journal.Balance(ctx, purse(owner, usd), time.Now())
	if err != nil || b.Used.USD < *usd*(1-1e-9) {
		return err
	}
	return spentError{problem(problems.TooMuch, http.StatusTooManyRequests, "the caller has spent its daily limit of %s USD: the next day begins at 00:00 UTC", money.Exact(max(*usd, 0)))}
}

// within returns a context with a budget for a single run or capability request. The caller must call release when the run or the
// request has ended.
func within(ctx context.Context, own *api.Budget) (_ context.Context, release context.CancelFunc) {
	l := limitsOf(own)
	if l == (budget.Limits{}) {
		return ctx, func() {}
	}
	account := budget.New(l)
	ctx, release = account.Context(ctx)
	return budget.With(ctx, account), release
}
