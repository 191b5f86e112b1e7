package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/kind"
)

// A verdict is the result of the gate for one answer.
type verdict struct {
	score        float64
	judge        *float64 // nil if the answer was not judged
	must, should []failedCheck
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
}

// A bar is the checks that a value must pass: an answer, or an input.
type bar struct {
	must, should []namedCheck
	scoreMin     float64
	host         Done // the part of a door that the policy wants; its musts are among those above
}

// gate checks an answer: first its schema, then must and should, then the judge. The
// judge is asked only about an answer that may still be accepted.
func (l *lane) gate(ctx context.Context, sub *Subject) (v verdict, err error) {
	for _, s := range l.outSchemas {
		if sub.invalid = s.Validate(ctx, sub.Out); sub.invalid != nil {
			break
		}
	}
	if err := context.Cause(ctx); err != nil {
		return v, err
	}
	if v, err = l.answer.weigh(ctx, sub); err != nil || v.failure != nil {
		return v, err
	}
	vetoed := false
	if l.judged(ctx, sub) {
		if v.judge, v.failure, err = l.grade(ctx, sub); err != nil || v.failure != nil {
			return v, err
		}
		if v.judge != nil {
			w := l.effective.judge.weight
			v.score = (1-w)*v.score + w**v.judge
			vetoed = l.effective.judge.veto && *v.judge < l.answer.scoreMin
		}
	}
	if v.failure = l.answer.low(&v); vetoed {
		v.failure = &Error{Type: LowScore, Message: fmt.Sprintf("the judge's score is %.3g, want %.3g", *v.judge, l.answer.scoreMin)}
	}
	return v, nil
}

// weigh runs must and should, and sets the score and the failure of an invalid value or of
// a must.
func (b *bar) weigh(ctx context.Context, sub *Subject) (v verdict, err error) {
	skipped := 0
	must, later := b.must, []namedCheck(nil)
	if sub.atDoor { // a program or a model sees only what the other checks let through
		must, later = cheap(b.must), costly(b.must)
	}
	v.must, err = failed(ctx, must, sub)
	if err == nil && len(v.must) == 0 {
		v.must, err = failed(ctx, later, sub)
	}
	if err == nil {
		should := b.should
		if sub.invalid != nil || len(v.must) > 0 { // already rejected: skip costly checks
			should = cheap(should)
			skipped = len(b.should) - len(should)
		}
		v.should, err = failed(ctx, should, sub)
	}
	if err != nil {
		return v, err
	}
	v.score = 1
	if n := len(b.should); n > 0 {
		v.score = float64(n-skipped-len(v.should)) / float64(n)
	}
	switch {
	case sub.invalid != nil:
		v.failure = &Error{Type: SchemaInvalid, Message: sub.invalid.Error(), Where: "result.out"}
	case len(v.must) > 0:
		v.failure = &Error{Type: MustFailed, Message: list(v.must)}
	}
	return v, nil
}

// cheap returns the checks that neither start a program nor ask a capability.
func cheap(checks []namedCheck) []namedCheck {
	return slices.DeleteFunc(slices.Clone(checks), func(c namedCheck) bool { return c.Costly })
}

// costly returns the others.
func costly(checks []namedCheck) []namedCheck {
	return slices.DeleteFunc(slices.Clone(checks), func(c namedCheck) bool { return !c.Costly })
}

// low is the failure of a score that is too low, or nil.
func (b *bar) low(v *verdict) *Error {
	if v.score >= b.scoreMin {
		return nil
	}
	return &Error{Type: LowScore, Message: strings.TrimSuffix(fmt.Sprintf("the score is %.3g, want %.3g: %s", v.score, b.scoreMin, list(v.should)), ": ")}
}

// failed runs checks and returns the failed ones. The error means that a check did not
// finish: ctx ended, the check waits for a person, or the account cannot pay for it.
func failed(ctx context.Context, checks []namedCheck, sub *Subject) (out []failedCheck, err error) {
	for _, c := range checks {
		switch err := c.holds(ctx, sub); {
		case err != nil && ctx.Err() != nil:
			return out, context.Cause(ctx)
		case errors.Is(err, kind.Waiting) || unpayable(err) != nil:
			return out, err
		case err != nil:
			out = append(out, failedCheck{c.name, valid(err.Error())})
		}
	}
	return out, nil
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
