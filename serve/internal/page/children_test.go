package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/page"
)

// starter runs children in the journal of their parent, one after the other.
type starter struct{ journal.Journal }

func (s starter) Start(ctx context.Context, c journal.Child) error {
	input, err := tree.ReadInput(ctx, c.Pipeline, c.Input)
	if err != nil {
		return err
	}
	_, _ = stone.Run(ctx, c.Pipeline, stone.Config{RunID: c.ID, Input: input, Recorder: journal.Keep(s.Journal, journal.Options{Labels: c.Labels})})
	return nil
}

func (s starter) Wait(ctx context.Context, c journal.Child) (journal.ChildState, error) {
	info, err := s.Find(ctx, c.ID)
	if err != nil {
		return journal.ChildState{}, err
	}
	questions, err := s.Questions(ctx, c.ID)
	return journal.ChildState{State: info.State, Questions: questions}, err
}

func (s starter) Answer(ctx context.Context, c journal.Child, path string, a ask.Answer) error {
	return journal.Answer(ctx, s.Journal, c.ID, path, a)
}

func (s starter) Cancel(context.Context, string) error { return nil }

// TestChildren: what a child asks is answered once, at its parent, which leads to the child and back.
func TestChildren(t *testing.T) {
	j := memdb.New(t)
	n, said := dag.NewType[int]("n"), dag.NewType[stone.Answer]("said")
	child := stone.Seq("child", stone.Ask("sure?", n, said, func(int) string { return "Is it?" }, stone.Choices("yes", "no")))
	p := stone.Seq("p", stone.Func0("one", n, func(context.Context) (int, error) { return 1, nil }), journal.Elsewhere("far", child, budget.Limits{}, starter{j}))
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "parent", Recorder: journal.Keep(j, journal.Options{})}); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	children, err := journal.Children(t.Context(), j, "parent")
	if err != nil || len(children) != 1 {
		t.Fatalf("%v, %v", children, err)
	}
	id := children[0].ID
	var answered []string
	answer := func(ctx context.Context, run string, a api.Answer) error {
		answered = append(answered, run)
		return journal.Answer(ctx, j, run, a.Question, ask.Answer{Response: a.Response, To: a.Version})
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: j, Answer: answer} }, API: "/v1"})
	get := func(at string) string {
		w := httptest.NewRecorder()
		if pages.ServeHTTP(w, httptest.NewRequest("GET", at, nil)); w.Code != 200 {
			t.Errorf("%s: status %d", at, w.Code)
		}
		return w.Body.String()
	}
	form := func(run string) string { return `action="/runs/` + run + `/answers"` }
	for at, want := range map[string]int{"/runs/parent": 1, "/questions": 1, "/runs/" + id: 0} {
		text := get(at)
		if strings.Count(text, form("parent")) != want || strings.Contains(text, form(id)) {
			t.Errorf("%s: want %d forms, all of the parent:\n%s", at, want, text)
		}
	}
	if text := get("/runs/" + id); !strings.Contains(text, `<a href="/runs/parent">parent</a>`) {
		t.Errorf("the child does not lead to its parent:\n%s", text)
	}
	if at := "/runs/parent/step?path=" + url.QueryEscape("p/far/"+id); !strings.Contains(get(at), `href="/runs/`+id+`"`) {
		t.Errorf("%s does not lead to the child", at)
	}
	asked, err := j.Questions(t.Context(), "parent")
	if err != nil || len(asked) != 1 {
		t.Fatalf("%v, %v", asked, err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/runs/parent/answers", strings.NewReader(url.Values{"question": {asked[0].Path}, "version": {asked[0].Version}, "response": {"yes"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if pages.ServeHTTP(w, r); w.Code != http.StatusSeeOther || len(answered) != 1 || answered[0] != "parent" {
		t.Errorf("the answer: status %d, %v\n%s", w.Code, answered, w.Body)
	}
	if err := journal.Cancel(t.Context(), j, "parent"); err != nil { // a child that is left alone asks for itself
		t.Fatal(err)
	}
	if text := get("/questions"); !strings.Contains(text, form(id)) {
		t.Errorf("a child that is left alone asks nobody:\n%s", text)
	}
}
