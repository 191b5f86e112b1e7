package call

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
)

// judged reports whether the judge is invoked for an answer. It is invoked for every answer or, with Canary, for a sample of the
// answers that does not change when the run is resumed.
func (l *lane) judged(ctx context.Context, sub *Subject) bool {
	j := &l.effective.judge
	if !j.on || j.canary >= 1 {
		return j.on
	}
	h := fnv.New64a()
	h.Write([]byte(stone.In(ctx).RunID() + "\x00" + stone.In(ctx).Path() + "\x00" + sub.Step + "\x00"))
	h.Write(sub.Out)
	// The product spreads the hash over the high bits; FNV alone spreads well only over the low bits.
	return float64(h.Sum64()*0x9E3779B97F4A7C15>>11)/(1<<53) < j.canary
}

// grade invokes the judge. If the judge fails or does not return a score between 0 and 1, it is invoked again, as often as the
// policy allows. If there is still no score, the policy decides whether the answer counts as not judged or fails with
// judgeInvalid. An exhausted account is a failure too.
func (l *lane) grade(ctx context.Context, sub *Subject) (said Verdict, failure *Error, err error) {
	e, why := l.judge, "there is no judge: register a capability with the intent "+terms.Grade
	j := &l.effective.judge
	for n := 1; e != nil; n++ {
		var a answer
		if a, failure, err = l.askJudge(ctx, sub, n); failure != nil || err != nil {
			return Verdict{}, failure, err
		}
		said = Verdict{By: e.ID, As: "judge", State: "passed"}
		if said.Score, said.Why, why = gradeOf(&a); why == "" {
			return said, nil, nil
		}
		said.State, said.Why = "failed", why
		if n >= j.attempts || a.RetryAfter > maxRetryAfter || e.down() {
			break
		}
		if a.live {
			if err := pause(ctx, n, a.RetryAfter); err != nil {
				return Verdict{}, nil, err
			}
		}
	}
	if j.open {
		return said, nil, nil
	}
	return said, &Error{Type: reasons.JudgeInvalid, Message: why}, nil
}

// askJudge invokes the judge for the n-th time for one answer.
func (l *lane) askJudge(ctx context.Context, sub *Subject, n int) (a answer, failure *Error, err error) {
	e, req, step := l.judge, l.request, "judge "+sub.Step
	if n > 1 {
		step = fmt.Sprintf("%s attempt %d", step, n)
	}
	req.Intent, req.Cap, req.Attempt, req.judges = terms.Grade, e.ID, n, true
	if req.Input, err = sub.Material(l.effective.judge.rubric); err != nil {
		return a, nil, err
	}
	// The effects granted to the answer are not granted to the judge.
	req.InSchema, req.Schema, req.schemaID, req.Turn = sub.Request.InSchema, builtin[terms.EvalAnswer], evalAnswerID, nil
	req.Context, req.Constraints, req.Requires, req.Done, req.Effects = nil, nil, Requires{}, Done{}, e.given(&Spec{})
	req.Cache = Cache{} // a judge is always invoked
	return l.pay(ctx, e, &req, step)
}

// Material returns the input for a capability that judges the subject s by a rubric. It has the built-in schema "req/eval". At
// the door, "out" is the input, "input" is null and "of" is "input".
func (s *Subject) Material(rubric string) (JSON, error) {
	r := s.Request
	input, of := r.Input, ""
	if s.atDoor {
		input, of = nil, "input"
	}
	return canon.Append(nil, struct {
		Rubric      string `json:"rubric,omitempty"`
		Intent      string `json:"intent"`
		Cap         string `json:"cap/id,omitempty"` // the capability that answered
		Of          string `json:"of,omitempty"`
		Input       JSON   `json:"input"`
		Context     JSON   `json:"context,omitempty"`
		Constraints JSON   `json:"constraints,omitempty"`
		Done        Done   `json:"done"`
		Out         JSON   `json:"out"`
	}{rubric, r.Intent, r.Cap, of, input, r.Context, r.Constraints, r.Done, s.Out})
}

// gradeOf returns the score and the reasons in the judge's answer, which is an object with a number "score" and optional
// "reasons", or just the number. If the answer has no valid score, why says what is wrong.
func gradeOf(a *answer) (score *float64, reasons, why string) {
	switch {
	case a.Failure != nil:
		return nil, "", "the judge failed: " + a.Failure.Error()
	case a.Reply.Type == Plan:
		return nil, "", "the judge answered with a plan: want a score"
	}
	out := a.Reply.Out
	var object struct{ Score, Reasons JSON }
	if json.Unmarshal(out, &object) == nil && object.Score != nil {
		out = object.Score
	}
	var grade float64
	if err := json.Unmarshal(out, &grade); err != nil || string(out) == "null" || grade < 0 || grade > 1 {
		return nil, "", fmt.Sprintf("the judge returned %.60s: want a score from 0 to 1", out)
	}
	var list []string
	_ = json.Unmarshal(object.Reasons, &list) // the reasons are optional: a judge may omit them or use another form
	return &grade, strings.Join(list, "; "), ""
}
