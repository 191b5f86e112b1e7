package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// Answer answers the open question of a run that has the name or path. A name that
// several open questions share is an error, and so is a response that the question does
// not accept. A running run continues at once, any other when it is resumed.
func Answer(ctx context.Context, j Interviewer, run, question, response string) error {
	questions, err := j.Questions(ctx, run)
	if err != nil {
		return err
	}
	var found []Question
	for _, q := range questions {
		if q.Open() && (q.Name == question || q.Path == question) {
			found = append(found, q)
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("run %q, question %q: %w", run, question, ErrNoQuestion)
	case len(found) > 1:
		return fmt.Errorf("run %q asks %q at %s and %d more places: name one by its path", run, question, found[0].Path, len(found)-1)
	}
	if err := found[0].Check(ctx, response); err != nil {
		return err
	}
	return j.Answer(ctx, run, found[0].Path, response)
}

// Check returns an error if the question does not accept the response, else nil. The
// empty response cancels any question.
func (q Question) Check(ctx context.Context, response string) error {
	if response == "" {
		return nil
	}
	if len(q.Choices) > 0 && !ask.Chosen(q.Choices, response) {
		return fmt.Errorf("%.200q is no answer to %q: want one of: %s", response, q.Name, strings.Join(q.Choices, ", "))
	}
	if len(q.Schema) == 0 {
		return nil
	}
	s, err := schema.Parse(q.Schema)
	if err == nil {
		err = s.Validate(ctx, []byte(response))
	}
	if err != nil {
		return fmt.Errorf("%.200q is no answer to %q: want JSON that fits its schema: %w", response, q.Name, err)
	}
	return nil
}

// frontend answers questions from the journal, or has them asked.
type frontend struct {
	*runner
	next ask.Frontend
}

// Ask implements ask.Frontend. An error of the journal does not fail the question, which
// a Rescue could recover: it stops the run, see recorder.Do.
func (f *frontend) Ask(ctx context.Context, asked ask.Question) (string, error) {
	trouble := troubleIn(ctx)
	if err := trouble.found(); err != nil {
		return "", err // the same question again, by a Retry
	}
	response, err := f.answer(ctx, asked)
	if err == nil && slices.Contains(asked.Standing, response) {
		err = f.settle(ctx, asked, response)
	}
	if store := (*storeError)(nil); errors.As(err, &store) && ctx.Err() == nil {
		trouble.note(store.error)
	}
	return response, err
}

// answer returns the answer in the journal, or asks for one.
func (f *frontend) answer(ctx context.Context, asked ask.Question) (string, error) {
	q := Question{
		Run: asked.RunID, Path: asked.Path, Name: asked.Name, Text: f.secrets.Clean(asked.Text),
		Choices: asked.Choices, Problem: f.secrets.Clean(asked.Problem), Asked: f.now(),
	}
	if asked.Schema != nil {
		q.Schema = json.RawMessage(asked.Schema.Ordered())
	}
	kept, err := f.journal.Ask(ctx, q)
	if err == nil && asked.Exact && kept.Text != q.Text {
		q.Problem = "the question has changed since it was asked"
		asked.Problem = q.Problem
		kept, err = f.journal.Ask(ctx, q)
	}
	switch {
	case err != nil:
		return "", &storeError{err}
	case !kept.Open():
		return kept.Response, nil
	}
	q.Problem = "" // it was withdrawn
	switch response, err := f.standing(ctx, asked); {
	case err != nil:
		return "", &storeError{err}
	case response != "":
		return f.keep(q, response)
	case f.next == nil:
		return "", kind.Waiting
	}
	return f.either(ctx, asked, q)
}

// settle answers the open questions that an earlier process has asked and that a standing
// answer answers too: they are not asked again.
func (f *frontend) settle(ctx context.Context, asked ask.Question, response string) error {
	questions, err := f.journal.Questions(ctx, asked.RunID)
	if err != nil {
		return &storeError{err}
	}
	for _, q := range questions {
		if q.Name == asked.Name && q.Open() {
			if _, err := f.keep(q, response); err != nil {
				return err
			}
		}
	}
	return nil
}

// standing returns the latest standing answer to the question, or "" if there is none. It looks
// in the run first, then in the runs of its session, newest first.
func (f *frontend) standing(ctx context.Context, asked ask.Question) (string, error) {
	if len(asked.Standing) == 0 {
		return "", nil
	}
	response, err := f.standingIn(ctx, asked.RunID, asked)
	if response != "" || err != nil || f.session == nil {
		return response, err
	}
	for q := (Query{Labels: f.session, Limit: DefaultLimit}); ; {
		runs, err := f.journal.Runs(ctx, q)
		if err != nil {
			return "", err
		}
		for _, r := range runs {
			if response, err = f.standingIn(ctx, r.ID, asked); response != "" || err != nil {
				return response, err
			}
			q.Before = r.ID
		}
		if len(runs) < q.Limit {
			return "", nil
		}
	}
}

// standingIn returns the latest standing answer to the question in one run, or "".
func (f *frontend) standingIn(ctx context.Context, run string, asked ask.Question) (string, error) {
	questions, err := f.journal.Questions(ctx, run)
	if err != nil {
		return "", err
	}
	var last Question
	for _, q := range questions {
		if q.Name == asked.Name && slices.Contains(asked.Standing, q.Response) && !q.Answered.Before(last.Answered) {
			last = q
		}
	}
	return last.Response, nil
}

// A storeError is an error of the journal, not of the frontend.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// trouble is the first error of the journal during a question of the body of a step. The
// context of the body carries it.
type trouble struct {
	first    atomic.Pointer[error]
	recorder *recorder // that records the step
}

type troubleKey struct{}

// troubleIn returns the trouble of the step to which ctx belongs.
func troubleIn(ctx context.Context) *trouble {
	t, _ := ctx.Value(troubleKey{}).(*trouble)
	return t
}

func (t *trouble) note(err error) {
	if t != nil {
		t.first.CompareAndSwap(nil, &err)
	}
}

func (t *trouble) found() error {
	if t == nil || t.first.Load() == nil {
		return nil
	}
	return *t.first.Load()
}

// either returns the answer of the frontend or the one that reaches the journal first. It
// does not keep the run from draining.
func (f *frontend) either(ctx context.Context, asked ask.Question, q Question) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		response string
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the frontend ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				a.err = stone.Fail(kind.Panic, "the frontend panicked: %v", p)
			}
			answers <- a
		}()
		a.response, a.err = f.next.Ask(ctx, asked)
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case a := <-answers:
			if a.err != nil {
				return "", a.err
			}
			return f.keep(q, a.response)
		case <-f.opts.Drain: // the question stays open, and nothing was paid for it
			return "", kind.Waiting
		case <-look.C:
			kept, err := f.journal.Ask(ctx, q)
			if err == nil && kept.Open() {
				continue
			}
			cancel()
			<-answers // it must not keep asking while the next question is asked
			if err != nil {
				return "", &storeError{err}
			}
			return kept.Response, nil
		}
	}
}

// keep records an answer, even if the run is over. If the question already has an answer,
// that one counts.
func (f *frontend) keep(q Question, response string) (string, error) {
	ctx := context.Background()
	err := f.journal.Answer(ctx, q.Run, q.Path, f.secrets.Clean(response))
	if errors.Is(err, ErrNoQuestion) {
		var kept Question
		kept, err = f.journal.Ask(ctx, q)
		response = kept.Response
	}
	if err != nil {
		return "", &storeError{err}
	}
	return response, nil
}
