package serve

import (
	"context"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/serve/api"
)

// A Mount is a function that returns the handler of another protocol, such as MCP in package x/mcp/server. It is called once,
// when the server is created.
type Mount func(*Server) (Handler, error)

// A Handler handles the requests of a mounted protocol. Before a Handler is called, the server has identified the caller and
// checked its rate limit, but not its roles; the handler returned by [Server.As] checks them.
//
// If its pattern contains the segment .well-known, the handler also receives requests from unknown callers. Their Principal has
// no roles.
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
			if r.Method == http.MethodGet { // mounted protocols use GET only for streams
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

// callerKey is the context key of the caller, set for requests to [Server.As] and for pages.
type callerKey struct{}

// As returns a handler that serves the API to the caller who. It checks roles, but not hosts, origins or rates. Use it in other
// protocols, and in programs that call the API without HTTP.
func (s *Server) As(who Principal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// inside returns the handler that As uses; it finds the caller in the context.
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

// Pipelines returns descriptions of the published pipelines, sorted by name.
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
