package serve

import (
	"context"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/serve/api"
)

// A Mount returns the handler of another protocol, such as that of package x/mcp/server, when the server is created.
type Mount func(*Server) (Handler, error)

// Handler handles a request from an admitted caller within its rate limit. The handler of [Server.As] checks the caller's roles.
//
// A pattern with the segment .well-known is public: its handler also gets the requests of unknown callers, with a Principal
// without roles.
type Handler func(w http.ResponseWriter, r *http.Request, who Principal)

// mount adds the handlers of Config.Mounts.
func (s *Server) mount(mux *http.ServeMux) error {
	for pattern, m := range s.cfg.Mounts {
		handle, err := m(s)
		if err != nil {
			return err
		}
		if strings.Contains(pattern, "/.well-known/") {
			mux.HandleFunc(pattern, s.meters.count(pattern, func(w http.ResponseWriter, r *http.Request) {
				who, err := s.access().Principal(s.withToken(r))
				if err != nil || !tenantName.MatchString(who.Tenant) {
					who = Principal{Roles: []Role{}}
				}
				handle(w, r, who)
			}))
			continue
		}
		mux.HandleFunc(pattern, s.serve(route{pattern, "", func(w http.ResponseWriter, r *http.Request, who Principal) error {
			if r.Method == http.MethodGet { // these protocols use it only for streams
				leave, err := s.hold(who)
				if err != nil {
					return err
				}
				defer leave()
			}
			handle(w, r, who)
			return nil
		}}))
	}
	return nil
}

// callerKey is the key of the caller in the context of a request to [Server.As] or for a page.
type callerKey struct{}

// As returns the API for requests of an admitted caller, without the checks of hosts, origins and rates, for other protocols and
// for use within a program.
func (s *Server) As(who Principal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// inside returns the handler of As, which finds the caller in the context.
func (s *Server) inside(routes []route) http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			s.handle(w, r, route, r.Context().Value(callerKey{}).(Principal))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, unrouted(mux, w, r)) })
	return mux
}

// Pipelines describes the published pipelines, in the order of their names.
func (s *Server) Pipelines() ([]api.Pipeline, error) {
	out := []api.Pipeline{}
	for _, p := range s.published() {
		described, err := s.describe(p)
		if err != nil {
			return nil, err
		}
		out = append(out, described)
	}
	return out, nil
}
