package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/kind"
)

// EvalGrade is the intent of judges.
const EvalGrade = "eval/grade"

// A verdict is what the gate says of an answer.
type verdict struct {
	score        float64
	judge        *float64 // nil if nobody judged
	must, should []failedCheck
	failure      *Error // nil if the answer is accepted
}

// A failedCheck is a check that did not hold.
type failedCheck struct {
	Name string `json:"check"`
	Why  string `json:"why"`
}

type namedCheck struct {
	name  string
	run   Check
	needs []string // effects
	costs bool     // it starts a program or asks a capability
}

// gate passes an answer through the gate: its schema, what it must and should be,
// and the judge, who is asked only about what may still be accepted.
func (l *lane) gate(ctx context.Context, sub *Subject) (v verdict, err error) {
	for _, s := range l.outSchemas {
		if sub.invalid = s.Validate(ctx, sub.Out); sub.invalid != nil {
			break
		}
	}
	if err := context.Cause(ctx); err != nil {
		return v, err
	}
	skipped := 0
	if v.must, err = failed(ctx, l.must, sub); err == nil {
		should := l.should
		if sub.invalid != nil || len(v.must) > 0 { // it is refused: what costs is not run
			should = slices.DeleteFunc(slices.Clone(should), func(c namedCheck) bool { return c.costs })
			skipped = len(l.should) - len(should)
		}
		v.should, err = failed(ctx, should, sub)
	}
	if err != nil {
		return v, err
	}
	v.score = 1
	if n := len(l.should); n > 0 {
		v.score = float64(n-skipped-len(v.should)) / float64(n)
	}
	switch {
	case sub.invalid != nil:
		v.failure = &Error{Type: SchemaInvalid, Message: sub.invalid.Error(), Where: "result.out"}
		return v, nil
	case len(v.must) > 0:
		v.failure = &Error{Type: MustFailed, Message: list(v.must)}
		return v, nil
	}
	vetoed := false
	if l.judged(ctx, sub) {
		defer func() {
			if err == nil && (v.failure == nil || !unpaid(v.failure.Type)) {
				l.counters().Judged(v.failure == nil)
			}
		}()
		if v.judge, v.failure, err = l.grade(ctx, sub); err != nil || v.failure != nil {
			return v, err
		}
		if v.judge != nil {
			w := l.effective.judge.weight
			v.score = (1-w)*v.score + w**v.judge
			vetoed = l.effective.judge.veto && *v.judge < l.scoreMin
		}
	}
	switch {
	case vetoed:
		v.failure = &Error{Type: LowScore, Message: fmt.Sprintf("the judge gives %.3g: want %.3g", *v.judge, l.scoreMin)}
	case v.score < l.scoreMin:
		v.failure = &Error{Type: LowScore, Message: strings.TrimSuffix(fmt.Sprintf("the score is %.3g, want %.3g: %s", v.score, l.scoreMin, list(v.should)), ": ")}
	}
	return v, nil
}

// failed runs checks and returns those that do not hold. The error says that one did
// not come to its end: because ctx did, it waits for a person or cannot be paid.
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
	if err := denied("the check", c.needs, stone.In(ctx).Grant()); err != nil {
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

// judged reports whether the judge is asked: always, or about a sample that is the
// same when the run is resumed.
func (l *lane) judged(ctx context.Context, sub *Subject) bool {
	j := &l.effective.judge
	if !j.on || j.canary >= 1 {
		return j.on
	}
	h := fnv.New64a()
	h.Write([]byte(stone.In(ctx).RunID() + "\x00" + stone.In(ctx).Path() + "\x00" + sub.Step + "\x00"))
	h.Write(sub.Out)
	// FNV spreads well over the low bits only.
	return float64(h.Sum64()*0x9E3779B97F4A7C15>>11)/(1<<53) < j.canary
}

// grade asks the judge. Without a score within 0..1 it is as configured: nobody
// judged, or a failure. The account may be spent, which is a failure too.
func (l *lane) grade(ctx context.Context, sub *Subject) (score *float64, failure *Error, err error) {
	grade, why := 0.0, "there is nobody to grade: register a capability with the intent "+EvalGrade
	if e := l.judge; e != nil {
		req := l.request
		req.Intent, req.Cap, req.Attempt, req.judges = EvalGrade, e.ID, 1, true
		req.Input, err = gradeInput(sub)
		if err != nil {
			return nil, nil, err
		}
		// What the answer may do is not for the judge to do.
		req.Context, req.Constraints, req.Requires, req.Done, req.Effects = nil, nil, Requires{}, Done{}, e.given(&Spec{})
		var a answer
		a, failure, err = l.pay(ctx, e, &req, "judge "+sub.Step)
		if failure != nil || err != nil {
			return nil, failure, err
		}
		grade, why = gradeOf(&a)
	}
	if why == "" {
		return &grade, nil, nil
	}
	if l.effective.judge.open {
		return nil, nil, nil
	}
	return nil, &Error{Type: JudgeInvalid, Message: why}, nil
}

// gradeInput is what the judge is asked.
func gradeInput(sub *Subject) (JSON, error) {
	r := sub.Request
	return canon.Append(nil, struct {
		Intent      string `json:"intent"`
		Cap         string `json:"cap/id"` // who answered
		Input       JSON   `json:"input"`
		Context     JSON   `json:"context,omitempty"`
		Constraints JSON   `json:"constraints,omitempty"`
		Done        Done   `json:"done"`
		Out         JSON   `json:"out"`
	}{r.Intent, r.Cap, r.Input, r.Context, r.Constraints, r.Done, sub.Out})
}

// gradeOf reads what the judge answered: an object with a number "score", or the
// number alone. Why says what is wrong with it.
func gradeOf(a *answer) (score float64, why string) {
	switch {
	case a.Failure != nil:
		return 0, "the judge failed: " + a.Failure.Error()
	case a.Reply.Type == Plan:
		return 0, "the judge answered with a plan: want a score"
	}
	out := a.Reply.Out
	var object struct{ Score JSON }
	if json.Unmarshal(out, &object) == nil && object.Score != nil {
		out = object.Score
	}
	if err := json.Unmarshal(out, &score); err != nil || string(out) == "null" || score < 0 || score > 1 {
		return 0, fmt.Sprintf("the judge gave %.60s: want a score within 0 and 1", out)
	}
	return score, ""
}
