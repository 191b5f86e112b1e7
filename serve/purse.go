package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/serve/api"
)

// A purseKey names what a caller may spend on a day.
type purseKey struct {
	owner string
	day   time.Time // 00:00 UTC
}

// purse returns the account of everything that a caller spends today (UTC). It starts with what the
// journal has for today. It is nil for a caller without a limit. The limit of a purse that is open
// changes only if usd is the limit of a caller who is here, and not of a run that was started
// earlier. A run that spans midnight belongs to the day on which this process started or resumed it.
func (s *Server) purse(ctx context.Context, owner string, usd float64, here bool) (*budget.Account, error) {
	key := purseKey{owner, time.Now().UTC().Truncate(24 * time.Hour)}
	find := func() *budget.Account {
		a := s.purses.by[key]
		if a != nil && here {
			a.LimitUSD(usd)
		}
		return a
	}
	s.purses.Lock()
	a := find()
	s.purses.Unlock()
	if a != nil || usd == 0 {
		return a, nil
	}
	spent, err := s.cfg.Journal.Spent(ctx, owner, key.day)
	if err != nil {
		return nil, err
	}
	s.purses.Lock()
	defer s.purses.Unlock()
	if a := find(); a != nil { // another request was faster
		return a, nil
	}
	a = budget.NewShared(budget.Limits{USD: usd})
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

// spentError says that a caller has spent its daily limit: a retry succeeds on the next day.
type spentError struct{ *api.Problem }

func (e spentError) Unwrap() error { return e.Problem }

// untilTomorrow returns the seconds until the next day in UTC, rounded up.
func untilTomorrow(now time.Time) int {
	const day = 24 * time.Hour
	return int((now.UTC().Truncate(day).Add(day).Sub(now) + time.Second - 1) / time.Second)
}

// solvent returns a spentError if a caller has spent its daily limit.
func (s *Server) solvent(ctx context.Context, owner string, usd float64) error {
	a, err := s.purse(ctx, owner, usd, true)
	if err != nil || a == nil || usd == 0 || a.Left().USD >= 0 {
		return err
	}
	return spentError{problem(api.TooMuch, http.StatusTooManyRequests, "the caller has spent its daily limit of %s USD: the next day begins at 00:00 UTC", money.Exact(usd))}
}

// account returns the account of a run, or of a capability request. It has the limits own and is
// below the account of the caller, who is here or has started the run earlier. It is nil if nothing limits it.
func (s *Server) account(ctx context.Context, owner string, usdADay float64, here bool, own *api.Budget) (*budget.Account, error) {
	shared, err := s.purse(ctx, owner, usdADay, here)
	l := limitsOf(own)
	if err != nil || shared == nil && l == (budget.Limits{}) {
		return nil, err
	}
	return shared.Sub(l), nil
}
