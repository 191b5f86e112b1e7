package serve

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/page"
)

// WriteHTML writes the run to w as a single HTML file that needs no server.
func WriteHTML(ctx context.Context, w io.Writer, j journal.Journal, run string) error {
	return page.Write(ctx, w, j, run)
}

// pageRoutes returns the routes of the pages. A page shows its caller only what the API would return to the same caller.
func (s *Server) pageRoutes() (routes []route) {
	pages := page.Handler(page.Config{View: s.view, Fail: s.fail, Select: filter.Query, API: "/v1", Design: s.cfg.Design})
	for _, pattern := range page.Patterns {
		role := Read
		switch {
		case strings.HasSuffix(pattern, "/answers"):
			role = Answer
		case strings.HasSuffix(pattern, "/search"):
			role = Act
		case strings.HasPrefix(pattern, "POST "):
			role = Start
		case strings.HasPrefix(pattern, "GET /assets/"):
			role = ""
		}
		routes = append(routes, route{pattern, role, func(w http.ResponseWriter, r *http.Request, who Principal) error {
			pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
			return nil
		}})
	}
	return routes
}

// view returns a caller's view of the pages.
func (s *Server) view(r *http.Request) page.View {
	who, _ := r.Context().Value(callerKey{}).(Principal)
	v := page.View{Journal: tenantJournal{server: s, who: who}, Tenant: who.Tenant}
	if s.session(r) != "" {
		v.LogOut = "/logout"
	}
	if who.may(Answer) {
		v.Answer = func(ctx context.Context, run string, a api.Answer) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.answer(ctx, who, info, a)
		}
	}
	if all := s.searches(); who.may(Act) && len(all) > 0 {
		v.Searches = all
		v.Search = func(r *http.Request, req api.Search) (api.Found, error) { return s.search(r, who, req) }
	}
	if len(s.cfg.Budgets) > 0 {
		v.Budgets = func(ctx context.Context) ([]view.Budget, error) { return s.budgets(ctx, who) }
	}
	if len(s.pipelines) > 0 {
		v.Pipelines = s.pagePipelines
	}
	if who.USDADay != nil && who.Name != "" {
		v.Purse = func(ctx context.Context) (*page.Purse, error) {
			b, err := s.cfg.Journal.Balance(ctx, purse(who.Name, who.USDADay), time.Now())
			return &page.Purse{Spent: b.Used.USD + b.Held.USD, Limit: *who.USDADay}, err
		}
	}
	if who.may(Start) && len(s.pipelines) > 0 {
		v.Start = func(ctx context.Context, id string, req api.Start) error {
			if !runName.MatchString(id) {
				return badID(id)
			}
			_, _, err := s.start(ctx, who, id, req)
			return err
		}
		v.Fork = func(ctx context.Context, run, at, id string) (*page.Forecast, error) {
			return s.fork(ctx, who, run, at, id)
		}
		v.Runs = func(info journal.RunInfo) bool {
			_, _, ok := s.publishedOf(info)
			return ok
		}
		v.Resume = func(ctx context.Context, run string, how api.Resume) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.restart(ctx, who, info, how)
		}
		v.Force = who.may(Force)
		v.Remove = func(ctx context.Context, run string) error { return s.remove(ctx, who, run) }
		v.Cancel = func(ctx context.Context, run string) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.stop(ctx, info)
		}
	}
	return v
}

// pagePipelines returns the published pipelines with their parts.
func (s *Server) pagePipelines() ([]page.Pipeline, error) {
	out := make([]page.Pipeline, 0, len(s.pipelines))
	for _, p := range s.published() {
		described, err := s.describe(p)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Pipeline{Pipeline: described, Shape: journal.Shape(p.Ashlar), Price: func() view.Price {
			return view.PriceOf(p.Ashlar.Bound(s.cfg.Base(), stone.Given{}), p.Limits.USD)
		}})
	}
	return out, nil
}

// login signs a person in with the token from a form.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	const most = 8 << 10
	r.Body = http.MaxBytesReader(w, r.Body, most)
	s.signIn(w, r, r.PostFormValue("token"), "/")
}

// tokenQuery is the query parameter that holds a token in a page's address.
const tokenQuery = "token"

// signsIn wraps the handler of a page so that a token in the page's address signs a person in. The command "stone serve" prints
// such an address.
func (s *Server) signsIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.Method != http.MethodGet || !query.Has(tokenQuery) {
			next(w, r)
			return
		}
		// Without this check, a link or a form on another website could sign a person in as somebody else.
		if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "none" && from != "same-origin" {
			s.turnAway(w, r, problem(problems.Forbidden, http.StatusForbidden, "a page of another origin has this link: open the address by hand to sign in"))
			return
		}
		to := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}
		token := query.Get(tokenQuery)
		query.Del(tokenQuery)
		to.RawQuery = query.Encode()
		s.signIn(w, r, token, to.String())
	}
}

// signIn starts a session for a valid token, and redirects the browser to a page.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, token, to string) {
	token = strings.TrimSpace(token)
	asked := r.Clone(r.Context())
	asked.Header.Set("Authorization", "Bearer "+token)
	if _, err := s.access().Principal(asked); err != nil || token == "" {
		s.fail(w, r, problem(problems.Unknown, http.StatusUnauthorized, "the token is unknown, revoked or expired"))
		return
	}
	http.SetCookie(w, cookie(r, s.sessions.start(token, time.Now())))
	http.Redirect(w, r, to, http.StatusSeeOther)
}
