package serve

import (
	"context"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/page"
)

// pageRoutes are the routes of the pages, which show a caller what the API would.
func (s *Server) pageRoutes() (routes []route) {
	pages := page.Handler(page.Config{View: s.view, Fail: s.fail, Select: selection, API: "/v1"})
	for _, pattern := range page.Patterns {
		role := Read
		switch {
		case strings.HasSuffix(pattern, "/answers"):
			role = Answer
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

// view returns what a caller sees on pages.
func (s *Server) view(r *http.Request) page.View {
	who, _ := r.Context().Value(callerKey{}).(Principal)
	view := page.View{Journal: s.cfg.Journal, Tenant: who.Tenant}
	if who.Tenant != "" {
		view.Journal = tenantJournal{server: s, who: who}
	}
	if who.may(Answer) {
		view.Answer = func(ctx context.Context, run string, a api.Answer) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.answer(ctx, who, info, a)
		}
	}
	if who.may(Start) && len(s.pipelines) > 0 {
		view.Runs = func(info journal.RunInfo) bool {
			src, ok := sourceOf(info)
			return ok && s.pipeline(src.Published) != nil
		}
		view.Resume = func(ctx context.Context, run string) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.restart(ctx, who, info, false)
		}
		if who.may(Force) {
			view.Force = func(ctx context.Context, run string) error {
				info, err := s.owned(ctx, who, run)
				if err != nil {
					return err
				}
				return s.restart(ctx, who, info, true)
			}
		}
		view.Cancel = func(ctx context.Context, run string) error {
			info, err := s.owned(ctx, who, run)
			if err != nil {
				return err
			}
			return s.stop(ctx, info)
		}
	}
	return view
}

// tokenCookie keeps the token with which a person has logged in. It stands for the header
// Authorization, which a browser cannot send.
const tokenCookie = "stone-token"

// withToken returns the request with the token of its cookie, unless it has one.
func withToken(r *http.Request) *http.Request {
	c, err := r.Cookie(tokenCookie)
	if err != nil || r.Header.Get("Authorization") != "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.Value)
	return r
}

// login remembers the token of a person in the browser, if it is valid.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	const most = 8 << 10
	r.Body = http.MaxBytesReader(w, r.Body, most)
	token := strings.TrimSpace(r.PostFormValue("token"))
	asked := r.Clone(r.Context())
	asked.Header.Set("Authorization", "Bearer "+token)
	if _, err := s.access().Principal(asked); err != nil || token == "" {
		s.fail(w, r, problem(api.Unknown, http.StatusUnauthorized, "the token is unknown, revoked or expired"))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: token, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
