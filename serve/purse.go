package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A purseKey names what a caller may spend on a day.
type purseKey struct {
	owner string
	day   time.Time // 00:00 UTC
	usd   float64
}

// purse returns the account of everything that a caller spends today (UTC). It starts with the
// cost that the journal has for today. It is nil for a caller without a limit. A run that spans
// midnight belongs to the day on which this process started or resumed it.
func (s *Server) purse(ctx context.Context, owner string, usd float64) (*budget.Account, error) {
	if usd == 0 {
		return nil, nil
	}
	key := purseKey{owner, time.Now().UTC().Truncate(24 * time.Hour), usd}
	s.purses.Lock()
	defer s.purses.Unlock()
	if a := s.purses.by[key]; a != nil {
		return a, nil
	}
	spent, err := s.spentSince(ctx, owner, key.day)
	if err != nil {
		return nil, err
	}
	a := budget.NewShared(budget.Limits{USD: usd})
	a.Charge(budget.Amount{USD: spent})
	for old := range s.purses.by {
		if old.day.Before(key.day) {
			delete(s.purses.by, old)
		}
	}
	if s.purses.by == nil {
		s.purses.by = map[purseKey]*budget.Account{}
	}
	s.purses.by[key] = a
	return a, nil
}

// spentSince returns the cost since a time that the journal has for the runs of a caller.
func (s *Server) spentSince(ctx context.Context, owner string, since time.Time) (usd float64, err error) {
	for info, err := range s.each(ctx, journal.Query{}) {
		if err != nil {
			return 0, err
		}
		if callerOf(info) != owner {
			continue
		}
		running := info.State == journal.Running || info.State == journal.Interrupted
		switch {
		case !running && info.Ended.Before(since):
		case !running && !info.Started.Before(since):
			usd += info.Usage.Amount().USD
		default:
			steps, err := s.cfg.Journal.Steps(ctx, info.ID)
			if err != nil {
				return 0, err
			}
			for _, one := range steps {
				if at := one.Ended; !at.Before(since) || at.IsZero() && !one.Started.Before(since) {
					usd += one.Spent().USD
				}
			}
		}
	}
	return usd, nil
}

// callerOf returns the caller that pays for a run. A run of a pipeline has its owner in its
// source: callers choose its labels.
func callerOf(info journal.RunInfo) string {
	if src, ok := sourceOf(info); ok {
		return src.Owner
	}
	return info.Labels[callerLabel]
}

// callerLabel is the label with the caller of a capability request, on the run that keeps the
// answer for a caller with a daily limit.
const callerLabel = "caller"

// solvent returns a problem if a caller has spent its daily limit.
func (s *Server) solvent(ctx context.Context, owner string, usd float64) error {
	a, err := s.purse(ctx, owner, usd)
	if err != nil || a == nil || a.Left().USD >= 0 {
		return err
	}
	return problem(api.TooMuch, http.StatusTooManyRequests, "the caller has spent its daily limit of %s USD: the next day begins at 00:00 UTC", money.Exact(usd))
}

// account returns the account of a run, or of a capability request. It has the limits own and is
// below the account of the caller. It is nil if nothing limits it.
func (s *Server) account(ctx context.Context, owner string, usdADay float64, own *api.Budget) (*budget.Account, error) {
	shared, err := s.purse(ctx, owner, usdADay)
	l := limitsOf(own)
	if err != nil || shared == nil && l == (budget.Limits{}) {
		return nil, err
	}
	return shared.Sub(l), nil
}
