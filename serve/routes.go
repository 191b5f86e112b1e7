package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/serve/api"
)

// maxBody is the maximum size of a request body.
const maxBody = 8 << 20

// bodyTime is the maximum time in which to receive a request body.
const bodyTime = 30 * time.Second

// A route handles the requests of one pattern of http.ServeMux.
type route struct {
	pattern string
	role    Role // required role; empty for every admitted caller
	handle  func(w http.ResponseWriter, r *http.Request, who Principal) error
}

// table returns the routes that require an identified caller.
func (s *Server) table() []route {
	all := []route{
		{"PUT /v1/runs/{id}", Start, s.putRun},
		{"POST /v1/runs", Start, s.postRun},
		{"GET /v1/runs", Read, s.listRuns},
		{"GET /v1/runs/{id}", Read, s.getRun},
		{"GET /v1/runs/{id}/result", Read, s.getResult},
		{"GET /v1/runs/{id}/events", Read, s.getEvents},
		{"GET /v1/runs/{id}/nodes/{node}", Read, s.getNode},
		{"POST /v1/runs/{id}/cancel", Start, s.cancelRun},
		{"POST /v1/runs/{id}/resume", Start, s.resumeRun},
		{"DELETE /v1/runs/{id}", Start, s.removeRun},
		{"GET /v1/questions", Read, s.openQuestions},
		{"GET /v1/runs/{id}/questions", Read, s.runQuestions},
		{"POST /v1/runs/{id}/answers", Answer, s.postAnswer},
		{"GET /v1/pipelines", Read, s.listPipelines},
		{"GET /v1/pipelines/{name}", Read, s.getPipeline},
		{"GET /v1/budgets", Read, s.listBudgets},
		{"GET /openapi.json", "", s.getOpenAPI},
		{"GET /metrics", Scrape, s.getMetrics},
		{"POST /v1/act", Act, s.postAct},
		{"GET /v1/caps", Act, s.listCaps},
		{"POST /v1/search", Act, s.postSearch},
	}
	for i, r := range all {
		if !slices.Contains(lists, r.pattern) {
			all[i].handle = withParameters(parameters[r.pattern], r.handle)
		}
	}
	for _, p := range s.protocols {
		for _, r := range p.Routes {
			all = append(all, route{r.Pattern, Role(r.Role), func(w http.ResponseWriter, req *http.Request, who Principal) error {
				return r.Serve(w, req, guest{s, who})
			}})
		}
	}
	return all
}

// lists contains the routes that check their query parameters themselves.
var lists = []string{"GET /v1/runs", "GET /v1/questions", "GET /v1/runs/{id}/questions"}

// parameters lists the query parameters of the other routes. Routes that are not listed have none.
var parameters = map[string][]string{
	"GET /v1/runs/{id}/result": {"wait"},
	"GET /v1/runs/{id}/events": {"after", "said"},
	"POST /v1/act":             {"id"},
}

// withParameters refuses requests with unknown query parameters, because a client expects that they have an effect.
func withParameters(known []string, handle func(http.ResponseWriter, *http.Request, Principal) error) func(http.ResponseWriter, *http.Request, Principal) error {
	return func(w http.ResponseWriter, r *http.Request, who Principal) error {
		for name := range r.URL.Query() {
			if !slices.Contains(known, name) {
				return unreadable("unknown parameter %q: want %s", name, cmp.Or(strings.Join(known, " or "), "none here"))
			}
		}
		return handle(w, r, who)
	}
}

func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.HandleFunc(r.pattern, s.serve(r))
	}
	for _, r := range s.pageRoutes() {
		h := s.signsIn(s.serve(r))
		if strings.HasPrefix(r.pattern, "GET /assets/") { // the login page needs assets before the caller is known
			h = s.meters.count(r.pattern, func(w http.ResponseWriter, req *http.Request) { s.handle(w, req, r, Principal{}) })
		}
		mux.HandleFunc(r.pattern, h)
	}
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	s.inner = s.inside(s.table())
	if err := s.mount(mux); err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("/", s.meters.count("other", func(w http.ResponseWriter, r *http.Request) { s.turnAway(w, r, unrouted(mux, w, r)) }))
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.turnAway(w, r, problem(problems.Forbidden, http.StatusForbidden, "a page of another origin sent the request"))
	}))
	return s.shielded(guard.Handler(mux)), nil
}

// shielded refuses requests to hosts that are not configured, and sets the headers of every reply. It also limits the time to
// read a body, whether the handler reads the body or net/http reads what the handler left unread.
func (s *Server) shielded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if len(r.TransferEncoding) > 0 {
			h.Set("Connection", "close") // a proxy may have seen a different end of the body
		}
		if r.ContentLength != 0 {
			// A test's connection may not support deadlines. At the end of the body, net/http removes this deadline.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		if !s.serves(r.Host) {
			s.turnAway(w, r, problem(problems.Forbidden, http.StatusMisdirectedRequest, "this server does not serve the host of the request"))
			return
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // URL.Query would drop malformed parts
			s.turnAway(w, r, unreadable("the query of the address cannot be read: %v", err))
			return
		}
		if query, err := url.QueryUnescape(r.URL.RawQuery); err != nil || !view.IsText(r.URL.Path+query) {
			s.turnAway(w, r, unreadable("the address is not UTF-8 or has a zero byte"))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// unwantedTime is the maximum time to read the rest of a refused body, so that a client that is still sending can receive the
// reply.
const unwantedTime = time.Second

// turnAway replies with an error without reading the request's body. If there is a body, the connection is closed afterwards.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unwantedTime)) // as in shielded: the connection may not support deadlines
	}
	s.fail(w, r, err)
}

// serves reports whether the server accepts requests to this host.
func (s *Server) serves(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if len(s.cfg.Hosts) > 0 {
		return slices.Contains(s.cfg.Hosts, host)
	}
	return host == "localhost" || net.ParseIP(host) != nil
}

// serve identifies the caller of a request and handles it.
func (s *Server) serve(route route) http.HandlerFunc {
	return s.meters.count(route.pattern, func(w http.ResponseWriter, r *http.Request) {
		who, err := s.access().Principal(s.withToken(r))
		if err == nil && !tenantName.MatchString(who.Tenant) {
			s.fail(w, r, fmt.Errorf("serve: Access returned the tenant %q", who.Tenant))
			return
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			var p *api.Problem
			if !errors.As(err, &p) {
				p = problem(problems.Unknown, http.StatusUnauthorized, "%v", err)
			}
			s.turnAway(w, r, p)
			return
		}
		if wait := s.rates.take(who, time.Now()); wait > 0 {
			seconds := int(math.Ceil(wait.Seconds()))
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			s.fail(w, r, problem(problems.TooMuch, http.StatusTooManyRequests, "too many requests: send the next one in %d s", seconds))
			return
		}
		s.handle(w, r, route, who)
	})
}

// handle handles a caller's request if the caller has the role that the route requires.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, route route, who Principal) {
	if route.role != "" && !who.may(route.role) {
		s.fail(w, r, lacking(route.role))
		return
	}
	if s.reads(route, r) {
		leave, err := s.places.enter(r.Context(), s.drain, who.Tenant)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		leave = sync.OnceFunc(leave)
		defer leave()
		w, r = placed{w, leave}, r.WithContext(context.WithValue(r.Context(), placeKey{}, true))
	}
	if err := route.handle(w, r, who); err != nil {
		s.fail(w, r, err)
	}
}

func lacking(role Role) *api.Problem {
	return problem(problems.Forbidden, http.StatusForbidden, "this needs the role %q, which the caller does not have", role)
}

func (s *Server) access() Access {
	if s.cfg.Access == nil {
		return everyone{}
	}
	return s.cfg.Access
}

// optional lists the paths that the OpenAPI document describes or clients try, and that only a package below x serves.
var optional = []struct{ path, home string }{
	{"/v1/agui", "x/ui"},
	{"/v1/chat/completions", "x/gateway"},
	{"/v1/embeddings", "x/gateway"},
	{"/v1/messages", "x/gateway"},
	{"/v1/models", "x/gateway"},
	{"/v1/responses", "x/gateway"},
	{"/v1/threads", "x/ui"},
	{"/v1/ui", "x/ui"},
	{"/mcp", "x/mcp/server"},
}

// unrouted returns the error for a request that no route matches. If the path has routes for other methods, the reply lists these
// methods. If a package that this program does not link serves the path, the error names the package.
func unrouted(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	if allowed := methods(mux, r, r.URL.Path); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problem(problems.BadPath, http.StatusMethodNotAllowed, "%s has no %s: want %s", r.URL.Path, r.Method, strings.Join(allowed, " or "))
	}
	for _, o := range optional {
		if r.URL.Path != o.path && !strings.HasPrefix(r.URL.Path, o.path+"/") {
			continue
		}
		if len(methods(mux, r, o.path))+len(methods(mux, r, o.path+"/x")) == 0 {
			p := notFound("this server has no %s: pass cli.Main the part of package github.com/stonelayer/stone/%s, or add it to serve.Config", r.URL.Path, o.home)
			p.Type = problems.BadPath
			return p
		}
	}
	return noRoute(r)
}

// methods returns the methods with which the path has a route.
func methods(mux *http.ServeMux, r *http.Request, path string) (allowed []string) {
	other, at := *r, *r.URL
	at.Path, other.URL = path, &at
	for _, other.Method = range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, pattern := mux.Handler(&other); pattern != "/" && pattern != "" {
			allowed = append(allowed, other.Method)
		}
	}
	return allowed
}

func noRoute(r *http.Request) error {
	p := notFound("there is no %s %s: see /openapi.json", r.Method, r.URL.Path)
	p.Type = problems.BadPath
	return p
}

// readBody reads a request body, which must be one JSON value without unknown fields.
func readBody(r *http.Request, to any) error {
	if err := protocol.WantType(r, "application/json"); err != nil {
		return err
	}
	data, err := io.ReadAll(r.Body)
	if errors.As(err, new(*http.MaxBytesError)) {
		return err
	}
	if err == nil { // names must be unique and match in case: otherwise a proxy could interpret the request differently
		if err = jsonv2.Unmarshal(data, to, jsonv2.RejectUnknownMembers(true)); err == nil {
			return nil
		}
		err = errors.New(jsonv2.Reason(err))
	}
	return unreadable("the body cannot be read: %v", err)
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, status int, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
	return nil
}
