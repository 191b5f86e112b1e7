package call

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
)

// dispatch invokes the candidates according to the call's strategy. It returns the outcome and all attempts, lane by lane. An
// error means that the call did not finish.
func (s *session) dispatch() (win *outcome, tried []Attempt, err error) {
	s.filter()
	switch s.spec.Dispatch.Strategy {
	case Tournament:
		return s.tournament()
	case Race:
		return s.race()
	case Agreement:
		return s.agreement()
	}
	return s.cascade(0, nil)
}

// filter determines which candidates cannot be invoked now, and the reasons.
func (s *session) filter() {
	s.reasons = make([]string, len(s.candidates))
	left := s.account.Left()
	grant := stone.In(s.ctx).Grant()
	for i, c := range s.candidates {
		if s.reasons[i] = c.reason; grant != nil && c.entry != nil && len(c.entry.Needs) > 0 {
			s.reasons[i] = c.entry.refuses(&s.spec, grant)
		}
		if s.reasons[i] == "" && s.offline && slices.ContainsFunc(c.entry.Needs, onWeb) {
			s.reasons[i] = wrongEffects
		}
		if s.reasons[i] == "" {
			s.reasons[i] = s.unavailable(c.entry, left)
		}
	}
}

// unavailable returns the first test that a candidate fails now, or "". A candidate that answered this call before the run was
// resumed passes, because its answer is recorded.
func (s *session) unavailable(e *entry, left budget.Limits) string {
	if recorded, _ := stone.In(s.ctx).Recorded(e.first()); recorded {
		return ""
	}
	return e.unavailable(left)
}

// eligible returns the indexes of the candidates to invoke: all candidates that pass the tests, up to the number that the policy
// allows.
func (s *session) eligible() []int {
	var places []int
	for i, reason := range s.reasons {
		if reason == "" && (s.fallbackMax < 0 || len(places) <= s.fallbackMax) {
			places = append(places, i)
		}
	}
	if i := slices.Index(s.reasons, costExceeded); len(places) == 0 && i >= 0 {
		return []int{i} // the account decides, as in a cascade
	}
	return places
}

func (s *session) lane(ctx context.Context, i int) *lane {
	return &lane{session: s, entry: s.candidates[i].entry, ctx: ctx}
}

// none returns the outcome for a call in which no candidate was invoked.
func (s *session) none() *outcome {
	e := &Error{Type: reasons.NoCandidate, Message: "no capability can answer " + s.subject()}
	for i, reason := range s.reasons {
		if i == 0 {
			e.Message += ": "
		} else {
			e.Message += ", "
		}
		c := s.candidates[i]
		c.reason = reason
		e.Message += c.id + " " + c.why(&s.spec, stone.In(s.ctx).Grant()) + s.meant(c)
		if reason == latencyExceeded || reason == costExceeded {
			e.Type = reasons.BudgetExhausted
		}
	}
	e.Cause = s.unpaid()
	return &outcome{failure: e}
}

// unpaid returns the account's refusal to pay for the cheapest candidate that was rejected because of its cost, or nil. If the
// run has no money left, resuming the run with more money repeats the call.
func (s *session) unpaid() error {
	least := math.Inf(1)
	for i, reason := range s.reasons {
		if reason == costExceeded {
			least = min(least, s.candidates[i].entry.Cost.USD)
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	return s.account.Affords(budget.Amount{USD: least})
}

func (s *session) subject() string {
	if s.spec.Tool != "" {
		return "as the tool " + s.spec.Tool
	}
	return "the intent " + s.spec.Intent
}

// cascade invokes one candidate after the other, starting at an index. Before is the outcome of earlier candidates, or nil if
// none was invoked. A candidate that is no longer available when its turn comes counts neither as an attempt nor as a fallback.
// If the last candidates are excluded only because of their cost, the account decides: it waits until estimates that others have
// reserved are settled, and its refusal may end the run.
func (s *session) cascade(from int, before *outcome) (win *outcome, tried []Attempt, err error) {
	asked, poor := 0, false
	if win = before; win != nil {
		asked = 1
	}
	for i, c := range s.candidates {
		if i < from {
			continue
		}
		if s.fallbackMax >= 0 && asked > s.fallbackMax {
			poor = false // the policy rather than the budget ends the call
			break
		}
		if s.reasons[i] == "" && asked > 0 { // the capability's state may have changed
			s.reasons[i] = s.unavailable(c.entry, s.account.Left())
		}
		if s.reasons[i] != "" {
			poor = poor || asked > 0 && (s.reasons[i] == costExceeded || s.reasons[i] == latencyExceeded)
			continue
		}
		asked++
		l := s.lane(s.ctx, i)
		l.tried = tried
		err := l.run()
		tried = l.tried
		if win = &l.last; err != nil || !s.goesOn(win) {
			return win, tried, err
		}
	}
	if win != nil && !poor {
		return win, tried, nil
	}
	if i := slices.Index(s.reasons[from:], costExceeded); i >= 0 {
		l := s.lane(s.ctx, from+i)
		l.tried = tried
		if err = l.run(); err != nil || win == nil || l.last.failure == nil || !unpaid(l.last.failure.Type) {
			return &l.last, l.tried, err
		}
		err = l.last.failure
	}
	if win == nil {
		return s.none(), tried, nil
	}
	win.failure = &Error{Type: reasons.BudgetExhausted, Message: "the remaining budget cannot pay for another candidate; the last failure was " + win.failure.Error(), Cause: errors.Join(win.failure, err)}
	return win, tried, nil
}

// tournament invokes all candidates at once and accepts the best answer, or the first of equally good answers. If the account
// runs out in one lane, a passing answer of another lane still wins, since it has been paid for.
func (s *session) tournament() (win *outcome, tried []Attempt, err error) {
	places := s.eligible()
	if len(places) == 0 {
		return s.none(), nil, nil
	}
	lanes, errs := s.reserved(places)
	for _, l := range lanes {
		l.last.final = false // the account may still pay for other lanes
	}
	together(lanes, errs)
	var spent *outcome // the lane in which the account ran out
	for k, l := range lanes {
		tried = append(tried, l.tried...)
		switch o := &l.last; {
		case errs[k] != nil:
			return nil, tried, errs[k]
		case o.final:
			spent = cmp.Or(spent, o)
		case o.failure == nil && (win == nil || win.failure != nil || o.verdict.score > win.verdict.score),
			o.failure != nil && (win == nil || win.failure != nil):
			win = o
		}
	}
	if spent != nil && (win == nil || win.failure != nil) {
		win = spent
	}
	discard(lanes, win)
	return win, tried, nil
}

// reserved returns lanes for the candidates at the given indexes. It draws the cost of their first attempts in order, before any
// of them starts.
func (s *session) reserved(places []int) (lanes []*lane, errs []error) {
	lanes, errs = make([]*lane, len(places)), make([]error, len(places))
	holds := s.ctx
	for k, i := range places {
		lanes[k] = s.lane(s.ctx, i)
		holds = lanes[k].reserve(holds, &errs[k])
	}
	return lanes, errs
}

// together concurrently runs all lanes that the account can pay for, and waits for them.
func together(lanes []*lane, errs []error) {
	var all sync.WaitGroup
	for k, l := range lanes {
		if l.last.failure != nil || errs[k] != nil {
			continue
		}
		all.Add(1)
		l.start(func(err error) {
			errs[k] = err
			all.Done()
		})
	}
	all.Wait()
}

// reserve draws the cost of a lane's first attempt before the lane starts. It returns the context for the draw of the next lane.
// Once a lane has reserved an estimate, later lanes fail instead of waiting for that estimate to be settled.
func (l *lane) reserve(ctx context.Context, ended *error) context.Context {
	req := l.request
	req.Cap, req.Effects = l.entry.ID, l.granted(l.entry)
	var draw *budget.Draw
	var err error
	if req.Guide, err = l.guide(l.entry, &req); err == nil { // the guide is part of the request, so its text is paid for too
		draw, err = l.entry.reserve(ctx, l.account, &req, l.entry.first())
	}
	if err != nil {
		*ended = l.ended(err)
		return ctx
	}
	l.reserved = draw
	return draw.Context(ctx)
}

// race starts the candidates together, or each when the previous one has failed or is late. It accepts the first answer that
// passes and cancels the other candidates, which have ended when race returns.
func (s *session) race() (win *outcome, tried []Attempt, err error) {
	places := s.eligible()
	if len(places) == 0 {
		return s.none(), nil, nil
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	h := &heat{session: s, ctx: ctx, holds: ctx, places: places, errs: make([]error, len(places)), ended: make(chan int, len(places))}
	hedge := s.spec.Dispatch.Hedge
	late := time.NewTimer(hedge)
	defer late.Stop()
	h.start()
	for h.running > 0 {
		select {
		case <-late.C:
			if h.more() && win == nil && err == nil {
				h.start()
				late.Reset(hedge)
			}
		case k := <-h.ended:
			h.running--
			o := &h.lanes[k].last
			switch {
			case win != nil: // a candidate has already won
			case h.errs[k] == nil && o.failure == nil:
				win = o
				cancel(errLost)
			case errors.Is(h.errs[k], kind.Waiting): // the other candidates continue, and one of them may win
				err = cmp.Or(err, h.errs[k])
			case h.errs[k] != nil && !s.lost(h.errs[k]):
				err = h.errs[k]
				cancel(errLost)
			case err == nil && h.more():
				h.start()
				late.Reset(hedge)
			}
		}
	}
	for _, l := range h.lanes {
		tried = append(tried, l.tried...)
	}
	discard(h.lanes, win)
	switch {
	case win != nil:
		return win, tried, nil
	case err != nil:
		return nil, tried, err
	}
	return &h.lanes[len(h.lanes)-1].last, tried, nil
}

// A heat is the state of a race.
type heat struct {
	*session
	ctx     context.Context
	holds   context.Context // the context for the next draw
	places  []int
	lanes   []*lane // the started lanes, in the order of candidates
	errs    []error
	ended   chan int
	running int
}

// more reports whether some candidates have not been started.
func (h *heat) more() bool { return len(h.lanes) < len(h.places) }

// start starts the next lane. The costs are drawn in order, because otherwise the speed of the draws would decide which candidate
// can use the remaining budget.
func (h *heat) start() {
	k := len(h.lanes)
	l := h.lane(h.ctx, h.places[k])
	l.loose = true
	h.lanes = append(h.lanes, l)
	h.running++
	if h.holds = l.reserve(h.holds, &h.errs[k]); l.reserved == nil {
		h.ended <- k
		return
	}
	l.start(func(err error) {
		h.errs[k] = err
		h.ended <- k
	})
}
