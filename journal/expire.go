package journal

import (
	"context"
	"errors"
	"time"

	"github.com/stonelayer/stone/ask"
)

// Expire answers each open question whose deadline has passed with the question's default answer. A server calls Expire each time
// it looks for runs to resume.
func Expire(ctx context.Context, j Journal, now time.Time) error {
	var failed []error
	for q, err := range j.EachQuestion(ctx, QuestionQuery{Due: now}) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		err = Answer(ctx, j, q.Run, q.Path, ask.Answer{Response: q.Default, By: "its deadline", To: q.Version})
		if !errors.Is(err, ErrAnswered) && !errors.Is(err, ErrNoQuestion) && !errors.Is(err, ErrAsksOther) { // the question was answered in the meantime
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
