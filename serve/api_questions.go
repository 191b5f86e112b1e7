package serve

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

func (s *Server) openQuestions(w http.ResponseWriter, r *http.Request, who Principal) error {
	values := r.URL.Query()
	if streams(r) {
		values.Del("after") // see sendList
	}
	q, limit, err := s.askedSelection(r.Context(), who, values, journal.QuestionQuery{Labels: who.labels(), Open: true})
	if err != nil {
		return err
	}
	return s.sendList(w, r, who, list{"questions?" + values.Encode(), func(ctx context.Context) (any, error) {
		return s.askedPage(ctx, who, q, limit)
	}})
}

// askedSelection parses the query parameters of a request for a list of questions: limit, from and, if the list is about one run,
// open.
func (s *Server) askedSelection(ctx context.Context, who Principal, values url.Values, q journal.QuestionQuery) (journal.QuestionQuery, int, error) {
	limit := journal.DefaultLimit
	for name := range values {
		value := values.Get(name)
		var err error
		switch {
		case name == "limit":
			if limit, err = strconv.Atoi(value); err == nil && (limit < 1 || limit > maxPage) {
				return q, 0, unreadable("limit is %d: want 1 to %d", limit, maxPage)
			}
		case name == "from":
			var text []byte
			if text, err = base64.RawURLEncoding.DecodeString(value); err == nil {
				run, path, _ := strings.Cut(string(text), "\n")
				if path == "" || !view.IsText(path) {
					return q, 0, unreadable("the parameter from was not issued by this server: want the field next of a page")
				}
				info, err := s.owned(ctx, who, run)
				if errors.Is(err, journal.ErrNoRun) { // the run was removed; the client did not ask for it by name
					return q, 0, conflict("the list has changed: read it from the start")
				}
				if err != nil {
					return q, 0, err
				}
				q.After = &journal.Question{Run: info.ID, Path: path}
			}
		case name == "open" && q.Run != "":
			q.Open, err = strconv.ParseBool(value)
		case q.Run != "":
			return q, 0, unreadable("unknown parameter %q: want limit, from or open", name)
		default:
			return q, 0, unreadable("unknown parameter %q: want limit or from", name)
		}
		if err != nil {
			return q, 0, unreadable("the parameter %s cannot be read: %v", name, err)
		}
	}
	return q, limit, nil
}

// recount is how long a count of a tenant's open questions is reused, because counting many questions takes as long as starting a
// run.
const recount = 10 * time.Second

type askedCount struct {
	open int
	at   time.Time
}

// asksFew returns an error if a tenant has too many open questions to start another run, and nil otherwise or if the caller has
// no tenant.
func (s *Server) asksFew(ctx context.Context, t *task) error {
	tenant := t.who.Tenant
	if tenant == "" {
		return nil
	}
	s.mu.Lock()
	known := s.asked[tenant]
	s.mu.Unlock()
	if time.Since(known.at) > recount {
		n, err := s.cfg.Journal.CountQuestions(ctx, journal.QuestionQuery{Labels: t.who.labels(), Open: true})
		if err != nil {
			return err
		}
		known = askedCount{n, time.Now()}
		s.mu.Lock()
		s.asked[tenant] = known
		s.mu.Unlock()
	}
	if err := bounds.CheckAsked("the tenant", known.open); err != nil {
		return problem(problems.TooMuch, http.StatusTooManyRequests, "%v", err)
	}
	return nil
}

// askedPage reads a page of questions. A page ends at the limit or when its texts have become large. No text is truncated,
// because a person has to read it in order to answer.
func (s *Server) askedPage(ctx context.Context, who Principal, q journal.QuestionQuery, limit int) (out api.Questions, err error) {
	page, more, err := view.Page(s.cfg.Journal.EachQuestion(ctx, q), limit, pageBytes)
	out.Questions = []api.Question{}
	for _, one := range page {
		out.Questions = append(out.Questions, question(who, one))
	}
	if more {
		last := out.Questions[len(page)-1]
		out.Next = base64.RawURLEncoding.EncodeToString([]byte(last.Run + "\n" + last.Path))
	}
	return out, err
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
	q, limit, err := s.askedSelection(r.Context(), who, r.URL.Query(), journal.QuestionQuery{Run: info.ID})
	if err != nil {
		return err
	}
	page, err := s.askedPage(r.Context(), who, q, limit)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, page)
}

// postAnswer answers a question, so that its run continues.
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

// unclear returns the error for an answer that has both a response and cancel, or neither. If it has neither, the error states
// which response the question expects.
func (s *Server) unclear(ctx context.Context, info journal.RunInfo, a api.Answer) error {
	want, i := "a text", 0
	for q, err := range s.cfg.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: info.ID}) {
		i++
		if word := a.Question; err == nil && q.Open() && (q.Path == word || q.Name == word || strconv.Itoa(i) == word || strings.HasSuffix(q.Path, "/"+word)) && len(q.Choices) > 0 {
			want = fmt.Sprintf("one of %q", q.Choices)
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
		_ = waitFor(ctx, run.started) // if the run was refused, its state says so
	}
	return nil // if the pipeline is not published here, another process resumes it
}

// saidAlready reports whether a question already has this answer, for example because a client lost the reply and sends the
// answer again.
func (s *Server) saidAlready(ctx context.Context, run string, a api.Answer) bool {
	for q, err := range s.cfg.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: run}) {
		if err == nil && (q.Path == a.Question || q.Name == a.Question) && !q.Open() && q.Response == a.Response && (a.Version == "" || a.Version == q.Version) {
			return true
		}
	}
	return false
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
	described, err := s.describe(p)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, described)
}

func (s *Server) describe(p *Pipeline) (api.Pipeline, error) {
	in, err := tree.InputSchema(p.Ashlar)
	if err != nil {
		return api.Pipeline{}, err
	}
	out := api.Pipeline{
		Name: p.Name, Description: cmp.Or(p.Description, p.Ashlar.Description()), Input: in.Ordered(),
		Effects: p.Ashlar.Effects(), Undeclared: p.Ashlar.Undeclared(), Asks: len(tree.Questions(p.Ashlar)) > 0,
		Continues: slices.ContainsFunc(tree.Inputs(p.Ashlar), p.makes), Files: s.files(p),
	}
	if t := p.Ashlar.Result(); t != nil && t.Err() == nil && p.Result == "" {
		out.Output = t.Schema().Ordered()
	}
	return out, nil
}
