package page

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/answers"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// question is an open question with its form.
type question struct {
	journal.Question
	Form    answers.Form
	Answers bool   // the question can be answered on the page
	Inbox   bool   // the next question is shown after this one is answered
	Saw     *saw   // nil if the question is not about a tool call
	Parent  string // the parent run that asks the same question and is to be answered instead
}

// saw is a tool call that an agent wants to make, with the conversation that led to it.
type saw struct {
	Request, Said string
	toolCall
}

// Blank returns a choice's text before its blank, or nil if it has no blank.
func (question) Blank(choice string) *string {
	if before, blank := ask.Blank(choice); blank {
		return &before
	}
	return nil
}

// Once returns the choices that answer only this question, except those with a blank.
func (q question) Once() []string {
	return slices.DeleteFunc(slices.Clone(q.Choices), func(choice string) bool {
		return q.Blank(choice) != nil || slices.Contains(q.Standing, choice)
	})
}

func questionOf(q journal.Question) question {
	out := question{Question: q, Form: answers.Of(q.Schema)}
	if c := q.Call; c != nil {
		left := allowance(2 * answerBytes)
		out.Saw = &saw{left.take(c.Request), left.take(c.Said), callOf(llm.ToolCall{ID: c.ID, Name: c.Tool, Input: c.Input}, &left)}
	}
	return out
}

// Diff returns the changes that an edit would make. It returns nil for other calls.
func (q question) Diff() []line {
	if q.Saw == nil {
		return nil
	}
	return q.Saw.Diff
}

// mostAnswered is the maximum number of answered questions on a run's page; the latest are shown.
const mostAnswered = 50

// Limits on the open questions on a page. Further questions are shown once these have been answered.
const (
	mostOpen  = 50
	openBytes = 1 << 20
)

// openOf returns the first open questions of a run, or of all runs, and reports whether there are more. Among all runs,
// children's questions are omitted, because their parents ask the same questions.
func openOf(ctx context.Context, v View, run string) (open []question, more bool, err error) {
	page, more, err := view.Page(func(yield func(journal.Question, error) bool) {
		for q, err := range v.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: run, Open: true}) {
			var parent *journal.RunInfo
			if err == nil && run == "" {
				parent, err = parentOf(ctx, v, q.Run)
			}
			if (parent == nil || view.Over(parent.State)) && !yield(q, err) {
				return
			}
		}
	}, mostOpen, openBytes)
	for _, q := range page {
		open = append(open, questionOf(q))
	}
	return open, more, err
}

// childPrefix is the prefix of the ids of runs that other runs have started.
const childPrefix = "child-"

// parentOf returns the run that started a child run. It returns nil for runs that are not children, and if the journal does not
// have the parent.
func parentOf(ctx context.Context, v View, id string) (info *journal.RunInfo, err error) {
	if strings.HasPrefix(id, childPrefix) {
		if info, err = known(ctx, v, id); info != nil {
			return known(ctx, v, strings.TrimPrefix(info.Labels[journal.Parent], v.Tenant+"."))
		}
	}
	return info, err
}

// known returns the run with exactly this id, or nil.
func known(ctx context.Context, v View, id string) (*journal.RunInfo, error) {
	info, err := find(ctx, v, id)
	var p *api.Problem
	switch {
	case errors.As(err, &p) && p.Status == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// asked lists the questions of a run.
type asked struct {
	Open     []question
	More     bool               // there are open questions that are not shown
	Answered []journal.Question // latest answered questions
	Earlier  int                // number of answered questions that are not shown
}

// askedOf returns the questions of a run.
func askedOf(ctx context.Context, v View, read *view.Run) (out asked, err error) {
	for _, q := range read.Questions {
		if !q.Open() {
			out.Answered = append(out.Answered, q)
		}
	}
	out.Earlier = max(len(out.Answered)-mostAnswered, 0)
	out.Answered = out.Answered[out.Earlier:]
	if len(read.Questions) > len(out.Answered)+out.Earlier {
		out.Open, out.More, err = openOf(ctx, v, read.ID)
	}
	return out, err
}

// askedAt returns the question that a step has asked, or nil.
func askedAt(ctx context.Context, v View, run, path string) (*journal.Question, error) {
	for q, err := range v.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: run, Path: path}) {
		return &q, err
	}
	return nil, nil
}

// inbox is the page that lists all open questions.
type inbox struct {
	Questions []question
	More      bool // there are questions that are not shown
	Answers   bool
}

// questions shows the open questions of all runs, oldest first.
func (p *pages) questions(w http.ResponseWriter, r *http.Request, v View) error {
	body := inbox{Answers: v.Answer != nil}
	var err error
	if body.Questions, body.More, err = openOf(r.Context(), v, ""); err != nil {
		return err
	}
	for i := range body.Questions {
		body.Questions[i].Answers, body.Questions[i].Inbox = body.Answers, true
	}
	return v.show(w, r, "questions", p.live(frame{Title: "Questions", Here: "questions", Body: body}, "/questions?limit="+strconv.Itoa(mostOpen)))
}

// fieldOf is the name prefix of a form's fields, so that no property has the same name as another input.
const fieldOf = "field."

// maxForm is the maximum size of a form.
const maxForm = 1 << 20

func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	text := true
	for name, values := range r.PostForm {
		text = text && view.IsText(name+strings.Join(values, ""))
	}
	if err != nil || !text {
		return &api.Problem{Type: problems.Invalid, Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The form cannot be read."}
	}
	return nil
}

// answer answers a question from the fields of a form.
func (p *pages) answer(w http.ResponseWriter, r *http.Request, v View) error {
	if v.Answer == nil {
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not answer questions here."}
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	path := r.PostForm.Get("question")
	q, err := askedAt(r.Context(), v, info.ID, path)
	if err != nil {
		return err
	}
	if q == nil || path == "" {
		return missing("Run %q asks no question at %q.", info.ID, path)
	}
	response := r.PostForm.Get("response")
	if before, blank := ask.Blank(response); blank && slices.Contains(q.Choices, response) {
		response = before + r.PostForm.Get("blank")
	}
	if response == "" {
		response = answers.Of(q.Schema).Response(func(name string) string { return r.PostForm.Get(fieldOf + name) })
	}
	if response == "" {
		return &api.Problem{Type: problems.Invalid, Title: "Unprocessable", Status: http.StatusUnprocessableEntity, Detail: "The answer is empty. Go back and fill in the form."}
	}
	if err := v.Answer(r.Context(), info.ID, api.Answer{Question: path, Response: response, Version: r.PostForm.Get("version")}); err != nil {
		return err
	}
	next := runURL(info.ID)
	if r.PostForm.Get("to") == "questions" {
		next = "/questions"
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}
