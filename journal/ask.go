package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// Answer answers an open question in a run. The argument question is compared first with the paths of the run's questions, then
// with their names, then with their numbers, and finally with the ends of their paths. A run's questions are numbered from 1 in the
// order in which they were first asked. If several open questions match, or the question does not accept the response, the error is
// an *AnswerError. If no open question matches, the error matches ErrNoQuestion, and also ErrAnswered if the question has already
// been answered. If the run is running, it continues immediately; otherwise it continues when it is resumed.
func Answer(ctx context.Context, j Journal, run, question string, a ask.Answer) error {
	q, err := meant(ctx, j, run, question)
	if err != nil {
		return err
	}
	if err := cmp.Or(bounds.CheckResponse(a.Response), q.Check(ctx, a.Response)); err != nil {
		return &AnswerError{err}
	}
	if len(a.By) > ask.MaxBy {
		return &AnswerError{fmt.Errorf("the answerer's name has %d bytes: want at most %d", len(a.By), ask.MaxBy)}
	}
	if a.To == "" {
		a.To = q.Version // the version against which a was checked
	}
	err = j.Answer(ctx, run, q.Path, a)
	if errors.Is(err, ErrNoQuestion) { // the question may have been answered in the meantime
		if _, now := meant(ctx, j, run, q.Path); errors.Is(now, ErrAnswered) {
			return now
		}
	}
	return err
}

// meant returns the open question that word selects; see Answer.
func meant(ctx context.Context, j Journal, run, word string) (Question, error) {
	var questions []Question // only the fields needed to select a question
	for q, err := range j.EachQuestion(ctx, QuestionQuery{Run: run}) {
		if err != nil {
			return q, err
		}
		questions = append(questions, Question{Path: q.Path, Name: q.Name, Answered: q.Answered})
	}
	answered := false
	for _, means := range []func(i int, q Question) bool{
		func(_ int, q Question) bool { return q.Path == word },
		func(_ int, q Question) bool { return q.Name == word },
		func(i int, _ Question) bool { return strconv.Itoa(i+1) == word },
		func(_ int, q Question) bool { return strings.HasSuffix(q.Path, "/"+word) },
	} {
		var found []int
		for i, q := range questions {
			switch {
			case !means(i, q):
			case q.Open():
				found = append(found, i)
			default:
				answered = true
			}
		}
		switch len(found) {
		case 0:
		case 1:
			for q, err := range j.EachQuestion(ctx, QuestionQuery{Run: run, Path: questions[found[0]].Path}) {
				return q, err
			}
			return Question{}, fmt.Errorf("run %s: %w", run, ErrNoQuestion) // the run was removed in the meantime
		default:
			return Question{}, &AnswerError{fmt.Errorf("run %s asks %q at %d places: name one by its number: %s", run, word, len(found), listed(questions, found))}
		}
	}
	if answered {
		return Question{}, &noQuestion{fmt.Sprintf("run %s: the question %.200q is answered", run, word), ErrAnswered}
	}
	var open []int
	for i, q := range questions {
		if q.Open() {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return Question{}, fmt.Errorf("run %s: %w", run, ErrNoQuestion)
	}
	return Question{}, &noQuestion{fmt.Sprintf("run %s has no question %.200q: it has %s", run, word, listed(questions, open)), ErrNoQuestion}
}

// noQuestion wraps ErrNoQuestion or ErrAnswered with a more specific message.
type noQuestion struct {
	text string
	err  error
}

func (e *noQuestion) Error() string { return e.text }
func (e *noQuestion) Unwrap() error { return e.err }

// listed returns, for an error message, the numbers and paths of the questions with the indexes in which.
func listed(questions []Question, which []int) string {
	const most = 10
	names := make([]string, min(len(which), most))
	for i := range names {
		names[i] = fmt.Sprintf("%d %q", which[i]+1, questions[which[i]].Path)
	}
	said := strings.Join(names, ", ")
	if n := len(which) - len(names); n > 0 {
		said += fmt.Sprintf(" and %d more", n)
	}
	return said
}

// answer returns the answer that is recorded in q.
func (q Question) answer() ask.Answer {
	a := ask.Answer{Response: q.Response, By: q.By, Given: q.Given}
	if a.Given.IsZero() {
		a.Given = q.Answered
	}
	return a
}

// Check returns an error if the question does not accept the response. Every question accepts an empty response, which cancels the
// question.
func (q Question) Check(ctx context.Context, response string) error {
	if response == "" {
		return nil
	}
	if len(q.Choices) > 0 && !ask.Chosen(q.Choices, response) {
		return fmt.Errorf("%.200q is not an answer to %q: want one of: %s", response, q.Name, strings.Join(q.Choices, ", "))
	}
	if len(q.Schema) == 0 {
		return nil
	}
	s, err := schema.Parse(q.Schema)
	if err == nil {
		err = s.Validate(ctx, []byte(response))
	}
	if err != nil {
		return fmt.Errorf("%.200q is not an answer to %q: want JSON that fits its schema: %w", response, q.Name, err)
	}
	return nil
}

// frontend answers questions from the journal, or passes them to the next frontend.
type frontend struct {
	*runner
	next ask.Frontend
}

// Ask implements ask.Frontend. An error of the journal stops the run (see recorder.Do). If it made only the question fail, a Rescue
// could hide it.
func (f *frontend) Ask(ctx context.Context, asked ask.Question) (ask.Answer, error) {
	trouble := troubleIn(ctx)
	if err := trouble.found(); err != nil {
		return ask.Answer{}, err // a Retry would ask the same question again
	}
	a, err := f.answer(ctx, asked)
	if err == nil && slices.Contains(asked.Standing, a.Response) {
		err = f.settle(ctx, asked, a)
	}
	return a, trouble.of(ctx, err)
}

// Keep records a question together with a, the standing answer that applies to it.
func (f *frontend) Keep(ctx context.Context, asked ask.Question, a ask.Answer) error {
	trouble := troubleIn(ctx)
	if err := trouble.found(); err != nil {
		return err
	}
	q := f.question(asked)
	kept, err := f.journal.Ask(ctx, q)
	if err == nil && kept.Version != q.Version {
		q.Problem = f.outdated(q, kept)
		kept, err = f.journal.Ask(ctx, q)
	}
	if err != nil {
		err = &storeError{err}
	} else if kept.Open() {
		_, err = f.keep(q, a)
	}
	return trouble.of(ctx, err)
}

// question returns a question in the form in which the journal stores it, without secrets.
func (f *frontend) question(asked ask.Question) Question {
	asked = clean(f.secrets, asked)
	q := Question{
		Run: asked.RunID, Path: asked.Path, Name: asked.Name, Text: asked.Text, Call: asked.Call,
		Choices: asked.Choices, Standing: asked.Standing, Problem: asked.Problem, Asked: f.now(), Version: asked.Version(),
	}
	if asked.Deadline > 0 {
		q.Due, q.Default = q.Asked.Add(asked.Deadline), asked.Default
	}
	if n := f.times(q.Path); n > 0 { // an answer does not apply to a step that was repeated with Options.Again
		q.Version += "-" + strconv.Itoa(n)
	}
	if asked.Schema != nil {
		q.Schema = json.RawMessage(asked.Schema.Ordered())
	}
	return q
}

// outdated returns the reason why the recorded answer in kept does not apply to q, or "" if it applies. If the run failed because
// the question was canceled, the answer does not apply, so a resumed run asks the question again.
func (r *runner) outdated(q, kept Question) string {
	now, _, _ := strings.Cut(q.Version, "-")
	was, _, _ := strings.Cut(kept.Version, "-")
	failure := r.before.Failure
	switch {
	case now != was:
		return "the question has changed since it was asked"
	case q.Version != kept.Version:
		return "the step is done again"
	case r.resumed && failure != nil && failure.Kind == string(kind.Declined) &&
		!kept.Open() && kept.Response == "" && !kept.Answered.After(r.before.Ended):
		return "it was cancelled"
	}
	return ""
}

// answer returns the recorded answer, or asks the question if there is none.
func (f *frontend) answer(ctx context.Context, asked ask.Question) (ask.Answer, error) {
	q := f.question(asked)
	if err := bounds.CheckQuestion(q.Path, q); err != nil {
		return ask.Answer{}, err // an error of the pipeline, not of the journal
	}
	if f.asked.count.Add(1)%256 == 0 {
		n, err := f.journal.CountQuestions(ctx, QuestionQuery{Run: q.Run, Open: true})
		if err != nil {
			return ask.Answer{}, &storeError{err}
		}
		if err := bounds.CheckAsked("the run", n); err != nil {
			return ask.Answer{}, err
		}
	}
	kept, err := f.journal.Ask(ctx, q)
	if why := f.outdated(q, kept); err == nil && why != "" {
		q.Problem, asked.Problem = why, why
		kept, err = f.journal.Ask(ctx, q)
	}
	switch {
	case err != nil:
		return ask.Answer{}, &storeError{err}
	case !kept.Open():
		return kept.answer(), nil
	}
	f.asked.note(q.Path)
	q.Problem = "" // the outdated answer has been withdrawn
	switch a, err := f.standing(ctx, asked); {
	case err != nil:
		return a, &storeError{err}
	case a.Response != "":
		return f.keep(q, a)
	case f.next == nil:
		return a, kind.Waiting
	}
	return f.either(ctx, asked, q)
}

// asked keeps track of the open questions that a run's steps have asked.
type asked struct {
	mu     sync.Mutex
	loaded bool                // within includes questions from earlier processes
	within map[string][]string // paths of questions, by enclosing address
	count  atomic.Int32        // number of questions asked
}

func (a *asked) note(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.within == nil {
		a.within = map[string][]string{}
	}
	for i, c := range path {
		if strings.ContainsRune("/[~", c) {
			a.within[path[:i]] = append(a.within[path[:i]], path)
		}
	}
}

// take removes and returns the paths of all open questions within a path.
func (a *asked) take(path string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.within[path]
	delete(a.within, path)
	return all
}

// superseded is the author of the answer to a withdrawn question.
const superseded = "the run, which needs no answer any more"

// withdraw closes the open questions within a leaf that has a result, because their answers are no longer needed. An example is the
// question of a lane that lost a race. If a question cannot be closed, it stays open, which is harmless.
func (r *runner) withdraw(ctx context.Context, leaf string) {
	if r.resumed && r.before.State != Done && r.before.State != Failed {
		r.asked.mu.Lock()
		first := !r.asked.loaded
		r.asked.loaded = true
		r.asked.mu.Unlock()
		if first {
			for q, err := range r.journal.EachQuestion(ctx, QuestionQuery{Run: r.cfg.RunID, Open: true}) {
				if err == nil { // after an error, the questions stay open
					r.asked.note(q.Path)
				}
			}
		}
	}
	for _, path := range r.asked.take(leaf) {
		_ = r.journal.Answer(ctx, r.cfg.RunID, path, ask.Answer{By: superseded}) // fails only if the question has been answered
	}
}

// settle answers open questions from earlier processes with the standing answer a if it applies to them, so that they are not asked
// again.
func (f *frontend) settle(ctx context.Context, asked ask.Question, a ask.Answer) error {
	if a.Given.IsZero() {
		a.Given = f.now()
	}
	for q, err := range f.journal.EachQuestion(ctx, QuestionQuery{Run: asked.RunID, Open: true}) {
		if err != nil {
			return &storeError{err}
		}
		if q.Name == asked.Name {
			if _, err := f.keep(q, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// standing returns the latest standing answer that applies to the question, or the zero Answer if there is none. It searches the
// run and then, newest first, the other runs of the run's session.
func (f *frontend) standing(ctx context.Context, asked ask.Question) (ask.Answer, error) {
	if len(asked.Standing) == 0 {
		return ask.Answer{}, nil
	}
	a, err := f.standingIn(ctx, asked.RunID, asked)
	if a.Response != "" || err != nil || f.session == nil {
		return a, err
	}
	labels := maps.Clone(f.session)
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	for q := (Query{Labels: labels, Limit: DefaultLimit}); ; {
		runs, err := f.journal.Runs(ctx, q)
		if err != nil {
			return a, err
		}
		for _, r := range runs {
			q.Before = r.ID
			if slices.ContainsFunc(slices.Collect(maps.Keys(f.session)), func(name string) bool { return r.Labels[name] != f.session[name] }) {
				continue // a query cannot exclude runs that have a label
			}
			if a, err = f.standingIn(ctx, r.ID, asked); a.Response != "" || err != nil {
				return a, err
			}
		}
		if len(runs) < q.Limit {
			return a, nil
		}
	}
}

// standingIn returns the latest standing answer in a single run that applies to the question, or the zero Answer if there is none.
func (f *frontend) standingIn(ctx context.Context, run string, asked ask.Question) (ask.Answer, error) {
	var last Question
	for q, err := range f.journal.EachQuestion(ctx, QuestionQuery{Run: run}) {
		if err != nil {
			return ask.Answer{}, err
		}
		if q.Name == asked.Name && slices.Contains(asked.Standing, q.Response) && !q.Answered.Before(last.Answered) {
			last = q
		}
	}
	return last.answer(), nil
}

// A storeError is an error of the journal, as opposed to an error of the frontend.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// trouble contains the first journal error that occurred when a step's body asked a question. It is stored in the body's context.
type trouble struct {
	first    atomic.Pointer[error]
	recorder *recorder // the recorder of the step
}

type troubleKey struct{}

// troubleIn returns the trouble stored in ctx, or nil if there is none.
func troubleIn(ctx context.Context) *trouble {
	t, _ := ctx.Value(troubleKey{}).(*trouble)
	return t
}

func (t *trouble) note(err error) {
	if t != nil {
		t.first.CompareAndSwap(nil, &err)
	}
}

// of returns err. If err is a storeError and ctx is not done, of also records it.
func (t *trouble) of(ctx context.Context, err error) error {
	if store := (*storeError)(nil); errors.As(err, &store) && ctx.Err() == nil {
		t.note(store.error)
	}
	return err
}

func (t *trouble) found() error {
	if t == nil || t.first.Load() == nil {
		return nil
	}
	return *t.first.Load()
}

// either waits for an answer from the frontend or from the journal, and returns the first one. If the run is drained, it returns an
// error.
func (f *frontend) either(ctx context.Context, asked ask.Question, q Question) (ask.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		ask.Answer
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the frontend called runtime.Goexit")}
		defer func() {
			if p := recover(); p != nil {
				a.err = stone.Fail(kind.Panic, "the frontend panicked: %v", p)
			}
			answers <- a
		}()
		a.Answer, a.err = f.next.Ask(ctx, asked)
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case a := <-answers:
			if a.err != nil {
				return a.Answer, a.err
			}
			return f.keep(q, a.Answer)
		case <-f.opts.Drain: // the question stays open, and asking it has cost nothing
			return ask.Answer{}, kind.Waiting
		case <-look.C:
			kept, err := f.journal.Ask(ctx, q)
			if err == nil && kept.Open() {
				continue
			}
			cancel()
			<-answers // the frontend must stop before the next question is asked
			if err != nil {
				return ask.Answer{}, &storeError{err}
			}
			return kept.answer(), nil
		}
	}
}

// keep records the answer a, even after the run was canceled, and returns the recorded answer. If the question has already been
// answered, keep returns the earlier answer.
func (f *frontend) keep(q Question, a ask.Answer) (ask.Answer, error) {
	ctx, kept := context.Background(), a
	kept.Response, kept.By = f.secrets.Clean(a.Response), f.secrets.Clean(a.By)
	if len(kept.By) > ask.MaxBy {
		kept.By = strings.ToValidUTF8(kept.By[:ask.MaxBy], "")
	}
	err := f.journal.Answer(ctx, q.Run, q.Path, kept)
	if errors.Is(err, ErrNoQuestion) {
		var first Question
		first, err = f.journal.Ask(ctx, q)
		a = first.answer()
	}
	if err != nil {
		return ask.Answer{}, &storeError{err}
	}
	return a, nil
}
