package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
)

// A judgement is the result of the gate for one answer.
type judgement struct {
	score        float64
	judge        *float64 // nil if the answer was not judged
	must, should []failedCheck
	all          []Verdict
	failure      *Error // nil if the answer is accepted
}

// A failedCheck is a check that the answer did not pass.
type failedCheck struct {
	Name string `json:"check"`
	Why  string `json:"why"`
}

type namedCheck struct {
	name string
	run  Check
	CheckFacts
	streak *fault.Streak
}

// breaks reports whether a check that returned err is broken: either no value can pass it, or the schema of the values is unknown
// and the check has returned errors for the last few values. If the schema is known, Validate has compared it with the check, so
// an error depends on the value.
func (c *namedCheck) breaks(err error, sub *Subject) bool {
	if _, always := fault.Broken(err); sub.Schema != nil {
		return always
	}
	return c.streak.Add(err)
}

// A bar holds the checks that an answer or an input must pass.
type bar struct {
	must, should []namedCheck
	scoreMin     float64
	host         Done // for a door: the policy's part of the checks, whose musts are also in must
}

// gate checks an answer whose schema was checked: first must and should, then the judge. The judge is invoked only for an answer that may
// still be accepted.
func (l *lane) gate(ctx context.Context, sub *Subject) (v judgement, err error) {
	if v, err = l.answer.weigh(ctx, sub); err != nil || v.failure != nil {
		return v, err
	}
	vetoed := false
	if l.judged(ctx, sub) {
		said, failure, err := l.grade(ctx, sub)
		if v.failure, v.judge = failure, said.Score; err != nil {
			return v, err
		}
		if v.judge != nil {
			w := l.effective.judge.weight
			v.score = (1-w)*v.score + w**v.judge
			if vetoed = l.effective.judge.veto && *v.judge < l.answer.scoreMin; vetoed {
				said.State = "failed"
			}
		}
		if said.By != "" {
			v.all = append(v.all, said)
		}
		if failure != nil {
			return v, nil
		}
	}
	if v.failure = l.answer.low(&v); vetoed {
		v.failure = &Error{Type: reasons.LowScore, Message: fmt.Sprintf("the judge's score is %.3g, want %.3g", *v.judge, l.answer.scoreMin)}
	}
	return v, nil
}

// weigh runs must and should and sets the score. For an invalid value or a failed must, it also sets the failure.
func (b *bar) weigh(ctx context.Context, sub *Subject) (v judgement, err error) {
	must, later := b.must, []namedCheck(nil)
	if sub.atDoor { // costly checks run last, only on values that pass the others
		must, later = cheap(b.must), costly(b.must)
	}
	if v.must, err = v.run(ctx, "must", must, sub); err != nil {
		return v, err
	}
	if v.failure != nil {
		return v, nil
	}
	if len(v.must) > 0 {
		v.skip("must", later)
	} else if v.must, err = v.run(ctx, "must", later, sub); err != nil || v.failure != nil {
		return v, err
	}
	should, skipped := b.should, []namedCheck(nil)
	if sub.invalid != nil || len(v.must) > 0 { // already rejected: skip costly checks
		should, skipped = cheap(should), costly(should)
	}
	if v.should, err = v.run(ctx, "should", should, sub); err != nil {
		return v, err
	}
	v.skip("should", skipped)
	if v.failure != nil {
		return v, nil
	}
	v.score = 1
	if n := len(b.should); n > 0 {
		v.score = float64(len(should)-len(v.should)) / float64(n)
	}
	switch {
	case sub.invalid != nil:
		v.failure = &Error{Type: reasons.SchemaInvalid, Message: sub.invalid.Error(), Where: "result.out"}
	case len(v.must) > 0:
		v.failure = &Error{Type: reasons.MustFailed, Message: list(v.must)}
	}
	return v, nil
}

// cheap returns the checks that neither start a program nor invoke a capability.
func cheap(checks []namedCheck) []namedCheck {
	return slices.DeleteFunc(slices.Clone(checks), func(c namedCheck) bool { return c.Costly })
}

// costly returns the checks that start a program or invoke a capability.
func costly(checks []namedCheck) []namedCheck {
	return slices.DeleteFunc(slices.Clone(checks), func(c namedCheck) bool { return !c.Costly })
}

// low returns a failure if the score is below the minimum, otherwise nil.
func (b *bar) low(v *judgement) *Error {
	if v.score >= b.scoreMin {
		return nil
	}
	return &Error{Type: reasons.LowScore, Message: strings.TrimSuffix(fmt.Sprintf("the score is %.3g, want %.3g: %s", v.score, b.scoreMin, list(v.should)), ": ")}
}

// run runs the given checks, records their verdicts and returns the checks that failed. A broken check stops it with the failure
// CheckBroken. An error means that a check did not finish: ctx ended, the check is waiting for a person, or the account cannot
// pay for it.
func (v *judgement) run(ctx context.Context, as string, checks []namedCheck, sub *Subject) (failed []failedCheck, err error) {
	for _, c := range checks {
		said := Verdict{By: c.name, As: as, State: "passed"}
		switch err := c.holds(ctx, sub); {
		case err != nil && ctx.Err() != nil:
			return failed, context.Cause(ctx)
		case errors.Is(err, kind.Waiting) || unpayable(err) != nil:
			return failed, err
		case c.breaks(err, sub):
			said.State, said.Why = "broken", valid(err.Error())
			v.all = append(v.all, said)
			v.failure = &Error{Type: reasons.CheckBroken, Message: fmt.Sprintf("the check %q cannot judge %s: %s", c.name, sub.what(), said.Why)}
			return failed, nil
		case err != nil:
			said.State, said.Why = "failed", valid(err.Error())
			failed = append(failed, failedCheck{c.name, said.Why})
		}
		v.all = append(v.all, said)
	}
	return failed, nil
}

// skip records that checks were not run.
func (v *judgement) skip(as string, checks []namedCheck) {
	for _, c := range checks {
		v.all = append(v.all, Verdict{By: c.name, As: as, State: "skipped"})
	}
}

func (c *namedCheck) holds(ctx context.Context, sub *Subject) (err error) {
	if err := denied("the check", c.Needs, stone.In(ctx).Grant()); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v %s", p, at(panics.Place()))
		}
	}()
	return c.run(ctx, *sub)
}

func list(checks []failedCheck) string {
	texts := make([]string, len(checks))
	for i, c := range checks {
		texts[i] = c.Name + ": " + c.Why
	}
	return strings.Join(texts, "; ")
}

func names(checks []failedCheck) []string {
	var out []string
	for _, c := range checks {
		out = append(out, c.Name)
	}
	return out
}
