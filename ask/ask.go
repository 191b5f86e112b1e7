// Package ask defines the interface between a run and the people who answer its
// questions. A [Frontend] needs it; a program that only asks, with stone.Ask, does not.
// Package frontend has several frontends.
package ask

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/schema"
)

// A Question is a question to a person. In a program that serves several runs, RunID
// and Path together identify an open question.
type Question struct {
	Name    string         // of the ashlar that asks; unique in a pipeline
	RunID   string         // the id of the run; empty before a run
	Path    string         // the address of the ashlar; empty before a run
	Text    string         // for the person; empty before a run
	Choices []string       // if not empty, the answer must be one of them; see Blank
	Schema  *schema.Schema // if not nil, the answer must be JSON that fits it
	Problem string         // why the previous answer was rejected, or ""

	// Standing are the choices that also answer all later questions of this Name in the
	// run, which are then not asked. A journal can share them among the runs of a session.
	Standing []string
	// Exact makes an answer count only for the Text to which it was given. If a resumed run
	// asks with another Text, the question is put again.
	Exact bool
}

// Blank returns the text before the blank of a choice that ends in "…". A response may
// have any text in place of the blank: "no: …" accepts "no: not today".
func Blank(choice string) (before string, ok bool) { return strings.CutSuffix(choice, "…") }

// Chosen reports whether the response is one of the choices.
func Chosen(choices []string, response string) bool {
	return slices.ContainsFunc(choices, func(c string) bool {
		before, blank := Blank(c)
		text, begins := strings.CutPrefix(response, before)
		return !blank && c == response || blank && begins && strings.Trim(text, " …") != ""
	})
}

// Check returns why a response is rejected, or nil. The empty response, which cancels
// the question, is never rejected. A [Frontend] that calls Check can ask again at once.
func (q *Question) Check(response string) error {
	if response == "" {
		return nil
	}
	if len(q.Choices) > 0 && !Chosen(q.Choices, response) {
		return fmt.Errorf("%.200q is no answer: want one of: %s", response, strings.Join(q.Choices, ", "))
	}
	if q.Schema != nil {
		if err := q.Schema.Validate(context.Background(), []byte(response)); err != nil {
			return fmt.Errorf("%.200q is no answer: want JSON that fits the schema: %w", response, err)
		}
	}
	return nil
}

// A Frontend shows questions to a person and returns the answers. It is not part of the
// pipeline: the same pipeline runs with a terminal, a web page or a test.
type Frontend interface {
	// Ask returns the answer, with who gave it if that is known. It must return when ctx is done. Lanes call it from several goroutines at
	// once. If the answer does not fit the question, Ask is called again, with
	// the Problem. An error is a failure of the step.
	//
	// Ask returns [kind.Waiting], or an error that wraps it, if it has passed the
	// question on but this process should not wait for the answer. Other lanes
	// continue and may ask their own questions; then the run fails with that kind. The
	// failure is neither rescued nor recorded, so that the same run with the same
	// Recorder asks again and continues once the answer exists.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// An Answer is an answer to a question, and who gave it.
type Answer struct {
	Response string // empty if the person cancelled the question
	// By is who answered, such as "user ada" or "token ops", in at most MaxBy bytes. It is
	// empty if that is not known.
	By string
	// Given is when it was given, to this question or, if it is a standing answer, to an
	// earlier one. Zero means now.
	Given time.Time
}

// MaxBy bounds Answer.By, in bytes.
const MaxBy = 256
