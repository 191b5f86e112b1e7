package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/tree"
)

func (s *Server) questionRoutes() []route {
	return []route{
		{"GET /v1/questions", Read, s.openQuestions},
		{"GET /v1/runs/{id}/questions", Read, s.runQuestions},
		{"POST /v1/runs/{id}/answers", Answer, s.postAnswer},
	}
}

func (s *Server) openQuestions(w http.ResponseWriter, r *http.Request, who Principal) error {
	return s.sendList(w, r, who, list{"questions", func(ctx context.Context) (any, error) {
		all, err := journal.OpenQuestions(ctx, s.cfg.Journal, who.labels())
		return questions(who, all), err
	}})
}

// questions describes questions for a caller.
func questions(who Principal, all []journal.Question) api.Questions {
	out := api.Questions{Questions: []api.Question{}}
	for _, q := range all {
		out.Questions = append(out.Questions, question(who, q))
	}
	return out
}

// question describes a question for a caller.
func question(who Principal, q journal.Question) api.Question {
	out := api.Question(q)
	out.Run = nameOf(who, q.Run)
	return out
}

func (s *Server) runQuestions(w http.ResponseWriter, r *http.Request, who Principal) error {
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	all, err := s.cfg.Journal.Questions(r.Context(), info.ID)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, questions(who, all))
}

// postAnswer answers a question, after which the run continues.
func (s *Server) postAnswer(w http.ResponseWriter, r *http.Request, who Principal) error {
	var answer api.Answer
	if err := readBody(r, &answer); err != nil {
		return err
	}
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	if err := s.answer(r.Context(), who, info, answer); err != nil {
		return err
	}
	if info, err = s.find(r, who); err != nil {
		return err
	}
	return reply(w, http.StatusOK, run(who, info))
}

// unclear is the error of an answer that says nothing, or two things. It has the choices.
func (s *Server) unclear(ctx context.Context, info journal.RunInfo, a api.Answer) error {
	want := "a text"
	if all, err := s.cfg.Journal.Questions(ctx, info.ID); err == nil {
		for i, q := range all {
			if word := a.Question; q.Open() && (q.Path == word || q.Name == word || strconv.Itoa(i+1) == word || strings.HasSuffix(q.Path, "/"+word)) && len(q.Choices) > 0 {
				want = fmt.Sprintf("one of %q", q.Choices)
			}
		}
	}
	if a.Cancel {
		return invalid(`the answer has a response and "cancel": want one of them`)
	}
	return invalid(`the answer has no response: want %s, or "cancel": true to cancel the question`, want)
}

// answer records an answer and resumes the run.
func (s *Server) answer(ctx context.Context, who Principal, info journal.RunInfo, a api.Answer) error {
	if err := bounds.CheckResponse(a.Response); err != nil {
		return unreadable("%v", err)
	}
	if a.Cancel == (a.Response != "") {
		return s.unclear(ctx, info, a)
	}
	err := journal.Answer(ctx, s.cfg.Journal, info.ID, a.Question, ask.Answer{Response: a.Response, By: who.by(), To: a.Version})
	var refused *journal.AnswerError
	switch {
	case errors.Is(err, journal.ErrAsksOther):
		return conflict("%v", journal.ErrAsksOther)
	case errors.Is(err, journal.ErrAnswered):
		if s.saidAlready(ctx, info.ID, a) {
			return nil
		}
		return conflict("the question is answered")
	case errors.Is(err, journal.ErrNoQuestion):
		return notFound("the run asks no question %q: GET /v1/runs/ID/questions lists them", a.Question)
	case errors.As(err, &refused):
		return invalid("%v", refused)
	case err != nil:
		return err
	}
	run, err := s.resume(ctx, info, task{})
	if stopped := info.State == journal.Waiting || info.State == journal.Answered || info.State == journal.Refused; err == nil && stopped {
		_ = waitFor(ctx, run.started) // the state says whether it was refused
	}
	return nil // where the pipeline is not published here, another process resumes it
}

// saidAlready reports whether a question has just this answer, as when a client lost the reply and
// sends it again.
func (s *Server) saidAlready(ctx context.Context, run string, a api.Answer) bool {
	all, err := s.cfg.Journal.Questions(ctx, run)
	return err == nil && slices.ContainsFunc(all, func(q journal.Question) bool {
		return (q.Path == a.Question || q.Name == a.Question) && !q.Answered.IsZero() && q.Response == a.Response && (a.Version == "" || a.Version == q.Version)
	})
}

func (s *Server) pipelineRoutes() []route {
	return []route{{"GET /v1/pipelines", Read, s.listPipelines}, {"GET /v1/pipelines/{name}", Read, s.getPipeline}, {"GET /v1/budgets", Read, s.listBudgets}, {"GET /openapi.json", "", s.getOpenAPI}, {"GET /metrics", Scrape, s.getMetrics}}
}

func (s *Server) listPipelines(w http.ResponseWriter, _ *http.Request, _ Principal) error {
	all, err := s.Pipelines()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, struct {
		Pipelines []api.Pipeline `json:"pipelines"`
	}{all})
}

func (s *Server) getPipeline(w http.ResponseWriter, r *http.Request, _ Principal) error {
	p := s.pipelines[r.PathValue("name")]
	if p == nil {
		return s.noPipeline(r.PathValue("name"))
	}
	described, err := p.describe()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, described)
}

func (p *Pipeline) describe() (api.Pipeline, error) {
	in, err := tree.InputSchema(p.Ashlar)
	if err != nil {
		return api.Pipeline{}, err
	}
	out := api.Pipeline{
		Name: p.Name, Description: cmp.Or(p.Description, p.Ashlar.Description()), Input: in.Ordered(),
		Effects: p.Ashlar.Effects(), Undeclared: p.Ashlar.Undeclared(), Asks: len(tree.Questions(p.Ashlar)) > 0,
		Continues: slices.ContainsFunc(tree.Inputs(p.Ashlar), p.makes),
	}
	if t := p.Ashlar.Result(); t != nil && t.Err() == nil && p.Result == "" {
		out.Output = t.Schema().Ordered()
	}
	return out, nil
}
