package page

import (
	"context"
	"net/http"
	"slices"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/answers"
)

// question is an open question, with what asks for its answer.
type question struct {
	journal.Question
	Form answers.Form
}

// Blank returns what stands before the blank of a choice, nil if it has none.
func (question) Blank(choice string) *string {
	if before, blank := ask.Blank(choice); blank {
		return &before
	}
	return nil
}

func questionOf(q journal.Question) question { return question{q, answers.Of(q.Schema)} }

// mostAnswered bounds the answers on the page of a run; the latest are shown.
const mostAnswered = 50

// asked is what a run has asked.
type asked struct {
	Open     []question
	Answered []journal.Question // the latest
	Earlier  int                // answers that are not shown
}

// askedOf returns what a run has asked.
func askedOf(all []journal.Question) (out asked) {
	for _, q := range all {
		if q.Open() {
			out.Open = append(out.Open, questionOf(q))
		} else {
			out.Answered = append(out.Answered, q)
		}
	}
	out.Earlier = max(len(out.Answered)-mostAnswered, 0)
	out.Answered = out.Answered[out.Earlier:]
	return out
}

// askedAt returns the question of a step, nil if it has asked none.
func askedAt(ctx context.Context, v View, run, path string) (*journal.Question, error) {
	all, err := v.Journal.Questions(ctx, run)
	if i := slices.IndexFunc(all, func(q journal.Question) bool { return q.Path == path }); i >= 0 {
		return &all[i], err
	}
	return nil, err
}

// inbox is the page of all open questions.
type inbox struct {
	Questions []question
	More      int // that are not shown
	Answers   bool
}

// questions shows the open questions of all runs, the oldest first.
func (p *pages) questions(w http.ResponseWriter, r *http.Request, v View) error {
	all, err := journal.OpenQuestions(r.Context(), v.Journal, nil)
	if err != nil {
		return err
	}
	const most = 50
	body := inbox{Answers: v.Answer != nil, More: max(len(all)-most, 0)}
	for _, q := range all[:min(len(all), most)] {
		body.Questions = append(body.Questions, questionOf(q))
	}
	return v.show(w, r, "questions", p.live(frame{Title: "Questions", Here: "questions", Body: body}, "/questions"))
}

// fieldOf is the prefix of the names of fields in a form, so that no property can have the name of
// another input.
const fieldOf = "field."

// maxForm is the largest form.
const maxForm = 1 << 20

func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &api.Problem{Type: api.Invalid, Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The form cannot be read."}
	}
	return nil
}

// answer answers a question by the fields of a form.
func (p *pages) answer(w http.ResponseWriter, r *http.Request, v View) error {
	if v.Answer == nil {
		return &api.Problem{Type: api.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not answer questions here."}
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	all, err := v.Journal.Questions(r.Context(), info.ID)
	if err != nil {
		return err
	}
	path := r.PostForm.Get("question")
	i := slices.IndexFunc(all, func(q journal.Question) bool { return q.Path == path })
	if i < 0 {
		return missing("Run %q asks no question at %q.", info.ID, path)
	}
	response := r.PostForm.Get("response")
	if before, blank := ask.Blank(response); blank {
		response = before + r.PostForm.Get("blank")
	}
	if response == "" {
		response = answers.Of(all[i].Schema).Response(func(name string) string { return r.PostForm.Get(fieldOf + name) })
	}
	if response == "" {
		return &api.Problem{Type: api.Invalid, Title: "Unprocessable", Status: http.StatusUnprocessableEntity, Detail: "The answer is empty. Go back and fill in the form."}
	}
	if err := v.Answer(r.Context(), info.ID, api.Answer{Question: path, Response: response, Version: r.PostForm.Get("version")}); err != nil {
		return err
	}
	http.Redirect(w, r, runURL(info.ID), http.StatusSeeOther)
	return nil
}
