package serve

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A purseKey names what a caller may spend on a day.
type purseKey struct {
	owner string
	day   time.Time // its begin, in UTC
	usd   float64
}

// purse returns the account of all that a caller spends today, which begins with what the
// journal has of the day. It is nil for a caller that has no limit. A run that goes on over
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

// spentSince returns what the runs of a caller have cost since a time, as far as the journal
// has it.
func (s *Server) spentSince(ctx context.Context, owner string, since time.Time) (usd float64, err error) {
	err = s.each(ctx, journal.Query{}, func(info journal.RunInfo) error {
		src, _ := sourceOf(info)
		if src.Owner != owner && info.Labels[callerLabel] != owner {
			return nil
		}
		running := info.State == journal.Running || info.State == journal.Interrupted
		switch {
		case !running && info.Ended.Before(since):
		case !running && !info.Started.Before(since):
			usd += info.Usage.USD
		default:
			steps, err := s.cfg.Journal.Steps(ctx, info.ID)
			if err != nil {
				return err
			}
			for _, one := range steps {
				if !one.Ended.Before(since) {
					usd += one.Usage.USD
				}
			}
		}
		return nil
	})
	return usd, err
}

// callerLabel is the label with the caller of an answer to a request for a capability, if
// what the caller may spend on a day is limited.
const callerLabel = "caller"

// solvent refuses the work of a caller that has spent what it may on this day.
func (s *Server) solvent(ctx context.Context, owner string, usd float64) error {
	a, err := s.purse(ctx, owner, usd)
	if err != nil || a == nil || a.Left().USD >= 0 {
		return err
	}
	return problem(api.TooMuch, http.StatusTooManyRequests, "the caller has spent its %s USD of today: the next day begins at 00:00 UTC", strconv.FormatFloat(usd, 'f', -1, 64))
}

// account returns the account of a run, or of a request for a capability: with limits of its
// own, and under that of its caller. It is nil if nothing limits it.
func (s *Server) account(ctx context.Context, owner string, usdADay float64, own *api.Budget) (*budget.Account, error) {
	shared, err := s.purse(ctx, owner, usdADay)
	l := limitsOf(own)
	if err != nil || shared == nil && l == (budget.Limits{}) {
		return nil, err
	}
	return shared.Sub(l), nil
}
