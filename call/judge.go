package call

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/canon"
)

// EvalGrade is the intent of judges.
const EvalGrade = "eval/grade"

// judged reports whether the judge is asked: about every answer, or about a sample that
// is the same when the run is resumed.
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

// grade asks the judge. If the judge fails or gives no score within 0..1, it is asked
// again, as often as the policy allows. Without a score, the policy decides: the answer
// counts as not judged, or it fails with JudgeInvalid. A spent account is a failure too.
func (l *lane) grade(ctx context.Context, sub *Subject) (score *float64, failure *Error, err error) {
	e, why := l.judge, "there is no judge: register a capability with the intent "+EvalGrade
	j := &l.effective.judge
	for n := 1; e != nil; n++ {
		var a answer
		if a, failure, err = l.askJudge(ctx, sub, n); failure != nil || err != nil {
			return nil, failure, err
		}
		var grade float64
		if grade, why = gradeOf(&a); why == "" {
			return &grade, nil, nil
		}
		if n >= j.attempts || a.RetryAfter > maxRetryAfter || e.down() {
			break
		}
		if a.live {
			if err := pause(ctx, backoff(n, a.RetryAfter)); err != nil {
				return nil, nil, err
			}
		}
	}
	if j.open {
		return nil, nil, nil
	}
	return nil, &Error{Type: JudgeInvalid, Message: why}, nil
}

// askJudge asks the judge for the n-th time about one answer.
func (l *lane) askJudge(ctx context.Context, sub *Subject, n int) (a answer, failure *Error, err error) {
	e, req, step := l.judge, l.request, "judge "+sub.Step
	if n > 1 {
		step = fmt.Sprintf("%s attempt %d", step, n)
	}
	req.Intent, req.Cap, req.Attempt, req.judges = EvalGrade, e.ID, n, true
	if req.Input, err = sub.Material(l.effective.judge.rubric); err != nil {
		return a, nil, err
	}
	// The effects granted to the answer are not granted to the judge.
	req.InSchema, req.Schema, req.schemaID, req.Turn = sub.Request.InSchema, builtin[EvalAnswer], evalAnswerID, nil
	req.Context, req.Constraints, req.Requires, req.Done, req.Effects = nil, nil, Requires{}, Done{}, e.given(&Spec{})
	req.Cache = Cache{} // a judge is asked each time
	return l.pay(ctx, e, &req, step)
}

// Material returns the input of a capability that judges the subject by a rubric, as of
// [EvalRequest]. At the door, "out" is the input, "input" is null and "of" is "input".
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

// gradeOf reads the judge's answer: an object with a number "score", or the number alone.
// If the answer has no valid score, why is the reason.
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
		return 0, fmt.Sprintf("the judge gave %.60s: want a score from 0 to 1", out)
	}
	return score, ""
}
