package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// Config configures Handler. View is required.
type Config struct {
	// View returns the view of the caller who sent a request.
	View func(*http.Request) View
	// Fail replies to a request with an error. If Fail is nil, an error page is sent, which reveals no more than that a run or a
	// node does not exist.
	Fail func(http.ResponseWriter, *http.Request, error)
	// Select returns the query for a list of runs from URL parameters. Nil selects all runs.
	Select func(url.Values) (journal.Query, error)
	// API is the path of package serve's API, such as "/v1". Pages are updated from its event streams. If API is empty, pages
	// poll every 2 seconds.
	API string
	// Design adds a page /design that shows the components of the pages.
	Design bool
}

// A View defines what a caller can see and do: the journal as the caller sees it, and the actions that are allowed.
type View struct {
	// Journal contains the runs. Only its reading methods are called.
	Journal journal.Journal
	// Tenant distinguishes runs with the same id in different journals. It may be empty.
	Tenant string
	// Answer answers a question of a run. If nil, questions cannot be answered.
	Answer func(ctx context.Context, run string, a api.Answer) error
	// Resume resumes a run that has stopped, and Cancel cancels a run that is not over. If nil, the action is not offered.
	Resume func(ctx context.Context, run string, how api.Resume) error
	Cancel func(ctx context.Context, run string) error
	// Remove deletes a run that has stopped. If nil, runs cannot be deleted.
	Remove func(ctx context.Context, run string) error
	// Force permits resuming a run even if its pipeline has changed.
	Force bool
	// Pipelines returns the published pipelines. If nil, only pipelines that have runs are shown.
	Pipelines func() ([]Pipeline, error)
	// Start starts a run with an id. Repeating an identical request does nothing. If nil, runs cannot be started.
	Start func(ctx context.Context, id string, req api.Start) error
	// Fork starts a run with the given id that repeats a step of another run. Without an id, it only predicts what the fork would
	// do. If nil, runs cannot be forked.
	Fork func(ctx context.Context, run, at, id string) (*Forecast, error)
	// Purse returns the caller's daily limit and spending, or nil if there is no limit. Purse may be nil.
	Purse func(ctx context.Context) (*Purse, error)
	// Budgets returns the shared budgets that the caller may see. It may be nil.
	Budgets func(ctx context.Context) ([]view.Budget, error)
	// Searches are the capabilities that search documents; Search calls one of them. If there are none, there is no search page.
	Searches []string
	Search   func(*http.Request, api.Search) (api.Found, error)
	// LogOut is the path of a form that ends the caller's session. It is empty if there is no session.
	LogOut string
	// Runs reports whether Resume can resume a run, because its pipeline is known. Nil means that it always can.
	Runs func(journal.RunInfo) bool
}

// policy is the Content-Security-Policy of the pages.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var (
	//go:embed assets
	assets embed.FS
	//go:embed templates
	sources embed.FS

	templates = template.Must(template.New("").Funcs(functions).ParseFS(sources, "templates/*.html"))
)

// pages is the handler that Handler returns.
type pages struct {
	Config
	busy sync.Map // requests in progress that change something, by tenant and path: a channel that is closed when the request is done
	last atomic.Pointer[compared]
}

// Patterns are the http.ServeMux patterns of the pages.
var Patterns = []string{
	"GET /{$}", "GET /runs/{id}", "GET /runs/{id}/step", "GET /runs/{id}/nodes/{node}", "GET /questions",
	"GET /overview", "GET /pipelines/{name...}", "POST /pipelines/{name}", "GET /compare", "POST /runs/{id}/answers", "POST /runs/{id}/resume", "POST /runs/{id}/cancel", "POST /runs", "GET /runs/{id}/trace", "GET /runs/{id}/result", "GET /search", "POST /search", "GET /design", "GET /chats/{chat}", "GET /runs/{id}/fork", "POST /runs/{id}/fork", "GET /assets/{file}",
}

// Handler returns a handler that serves Patterns. Wrap it in a check that rejects cross-origin requests which change something,
// for example http.CrossOriginProtection.
func Handler(cfg Config) http.Handler {
	p := &pages{Config: cfg}
	mux := http.NewServeMux()
	handlers := []func(http.ResponseWriter, *http.Request, View) error{
		p.runs, p.run, p.step, p.node, p.questions, p.overview, p.pipeline, p.start, p.compare, p.answer, p.resume, p.cancel, p.chosen, trace, result, search, search, p.design, p.chat, fork, fork,
	}
	for i, handle := range handlers {
		mux.HandleFunc(Patterns[i], p.serve(handle))
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil { // cannot fail: the file is embedded
		panic(err)
	}
	served := http.StripPrefix("/assets/", http.FileServerFS(files))
	mux.HandleFunc(Patterns[len(handlers)], func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		served.ServeHTTP(w, r)
	})
	return mux
}

func (p *pages) serve(handle func(http.ResponseWriter, *http.Request, View) error) http.HandlerFunc {
	fail := p.Fail
	if fail == nil {
		fail = func(w http.ResponseWriter, r *http.Request, err error) { Fail(w, problemOf(err)) }
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r, p.View(r)); err != nil {
			fail(w, r, err)
		}
	}
}

func problemOf(err error) *api.Problem {
	var problem *api.Problem
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, journal.ErrNoRun), errors.Is(err, journal.ErrNoNode):
		return missing("%v", err)
	}
	return &api.Problem{Type: problems.Internal, Status: http.StatusInternalServerError, Title: "Internal Server Error",
		Detail: "The page cannot be shown: the journal does not answer as it should. The log of the server may say why."}
}

// Fail replies with an error page. If the caller is unknown, the page asks for a token and posts it to /login in the field
// "token".
func Fail(w http.ResponseWriter, p *api.Problem) {
	if err := show(w, p.Status, "problem", frame{Title: p.Title, Body: p}); err != nil {
		http.Error(w, p.Error(), p.Status)
	}
}

// frame is the part that all pages have in common.
type frame struct {
	Title  string
	Here   string // menu entry of the page
	Stream string // address of the event stream that updates the page
	LogOut string // View.LogOut
	Finds  bool   // documents can be searched
	Waits  int    // number of runs waiting for an answer, at most mostWaits
	Poll   bool   // poll every 2 seconds, because there is no stream, or one that is too long to read from its start
	Body   any
}

// live makes a page follow an event stream of the API, or poll if there is no API.
func (p *pages) live(f frame, stream string) frame {
	if f.Poll = p.API == ""; !f.Poll {
		f.Stream = p.API + stream
	}
	return f
}

// mostWaits is the maximum number of waiting runs that the menu shows.
const mostWaits = 100

// show renders a page for the caller who sent a request.
func (v View) show(w http.ResponseWriter, r *http.Request, name string, f frame) error {
	waiting, err := v.Journal.Runs(r.Context(), journal.Query{States: []journal.State{journal.Waiting}, Limit: mostWaits})
	if err != nil {
		return err
	}
	f.LogOut, f.Waits, f.Finds = v.LogOut, len(waiting), v.Search != nil
	return show(w, http.StatusOK, name, f)
}

// Count returns the number of waiting runs for the menu.
func (f frame) Count() string {
	if f.Waits >= mostWaits {
		return strconv.Itoa(mostWaits-1) + "+"
	}
	return count(f.Waits)
}

// show renders a page. Nothing is written if rendering fails.
func show(w http.ResponseWriter, status int, name string, f frame) error {
	var out bytes.Buffer
	if err := render(&out, name, f); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // an error means that the browser is gone
	return nil
}

// render renders the content of a page into the common frame.
func render(out *bytes.Buffer, name string, f frame) error {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, name, f.Body); err != nil {
		return err
	}
	return templates.ExecuteTemplate(out, "frame", struct {
		frame
		HTML template.HTML // a template has already escaped it
	}{f, template.HTML(body.String())})
}
