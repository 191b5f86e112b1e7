package call

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
)

// Agreeing returns the number of candidates that an agreement invokes at once. For any other strategy, it returns 0.
func (d *Dispatch) Agreeing() int {
	switch {
	case d.Strategy != Agreement:
		return 0
	case d.Agree == nil || d.Agree.First == 0:
		return 2
	}
	return d.Agree.First
}

// resolveAgreement resolves the check that compares the answers of an agreement. The metadata of all the first candidates must
// allow the call, because an agreement needs the answer of each.
func (r *resolved) resolveAgreement(s *Spec, app *Applicator) {
	if s.Dispatch.Strategy != Agreement {
		return
	}
	if a := s.Dispatch.Agree; a != nil && a.Check != "" {
		r.agree = r.checks(app, []string{a.Check}, r.inputType(s), nil)
	}
	if s.open() || len(r.faults) > 0 {
		return
	}
	n := s.Dispatch.Agreeing()
	if len(r.candidates) < n {
		r.fault("no-candidate", "an agreement calls %d candidates at once, but the call has only %d: add candidates", n, len(r.candidates)).Queried = s.Intent
		return
	}
	for _, c := range r.candidates[:n] {
		if c.reason != "" {
			r.fault("no-candidate", "%s cannot agree: %s", c.id, c.reason).Queried = c.id
		}
	}
}

// agreement invokes the first candidates at once. If all their answers pass the gate and agree, the first candidate's answer is
// accepted. Otherwise, the other candidates follow as a cascade, in which an answer has to pass only the gate. If one of the
// first candidates is unavailable, none of the first candidates is invoked.
func (s *session) agreement() (win *outcome, tried []Attempt, err error) {
	first := min(s.spec.Dispatch.Agreeing(), len(s.candidates))
	places := make([]int, first)
	for i := range places {
		places[i] = i
		if why := s.reasons[i]; why != "" {
			s.disagreed = cmp.Or(s.disagreed, s.candidates[i].id+" "+why)
		}
	}
	if s.disagreed == "" {
		var lanes []*lane
		lanes, win, err = s.agreed(places)
		for _, l := range lanes {
			tried = append(tried, l.tried...)
		}
		if err != nil || win.failure == nil {
			discard(lanes, win)
			return win, tried, err
		}
		discard(lanes, nil)
		if win.failure.Type != reasons.Disagreed && !s.goesOn(win) {
			return win, tried, nil
		}
	}
	win, more, err := s.cascade(first, win)
	return win, append(tried, more...), err
}

// agreed invokes the candidates at the given indexes. If their answers agree, it returns the first candidate's answer; otherwise,
// it returns a failure. If the account cannot reserve the cost of all of them at once, agreed invokes them one after the other,
// because a call that is waiting for money must not reserve any.
func (s *session) agreed(places []int) (lanes []*lane, win *outcome, err error) {
	lanes, errs := s.reserved(places)
	if slices.ContainsFunc(lanes, func(l *lane) bool { return l.reserved == nil }) {
		for _, l := range lanes {
			l.reserved.Close()
		}
		lanes, errs = nil, nil
		for _, i := range places {
			l := s.lane(s.ctx, i)
			lanes, errs = append(lanes, l), append(errs, l.run())
			if l.last.failure != nil || errs[len(errs)-1] != nil {
				break
			}
		}
	} else {
		together(lanes, errs)
	}
	for k, l := range lanes {
		if errs[k] != nil {
			return lanes, nil, errs[k]
		}
		if o := &l.last; o.failure != nil && (win == nil || s.goesOn(win) && !s.goesOn(o)) {
			win = o
		}
	}
	if win != nil {
		s.disagreed = fmt.Sprintf("%s: %v", win.cap, win.failure)
		return lanes, win, nil
	}
	win = &lanes[0].last
	s.disagreed, err = s.compare(lanes)
	if failure := unpayable(err); failure != nil {
		win.failure, win.final = failure, true
		return lanes, win, nil
	}
	if s.disagreed != "" {
		win.failure = &Error{Type: reasons.Disagreed, Message: s.disagreed}
	}
	return lanes, win, err
}

// compare returns the reason why the lanes' answers disagree, or "" if they agree. An error means that the check did not finish.
func (s *session) compare(lanes []*lane) (why string, err error) {
	answers := make([]JSON, len(lanes))
	for i, l := range lanes {
		if answers[i], err = canon.AppendJSON(nil, l.last.out); err != nil {
			return "", err
		}
	}
	if s.agree == nil {
		for i, a := range answers {
			if !bytes.Equal(a, answers[0]) {
				return fmt.Sprintf("the answers of %s and %s differ", lanes[0].entry.ID, lanes[i].entry.ID), nil
			}
		}
		return "", nil
	}
	all, err := canon.Append(nil, answers)
	if err != nil {
		return "", err
	}
	req := s.request
	found, err := new(judgement).run(s.ctx, "must", s.agree, &Subject{Request: &req, Out: all, Step: "agreement"})
	return list(found), err
}
