package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// Config describes the agent. Its zero value is usable.
type Config struct {
	Name        string // empty means the name of the only pipeline, or "stone"
	Description string // empty means the description of the only pipeline, or a list of all
	Version     string // "1" by default
	// URL is the server's public address, without a path. If empty, the card uses the request's host, with https if a proxy sets
	// X-Forwarded-Proto.
	URL string
	// Private lets receivers of notifications be outside the public Internet, and use http.
	Private bool
}

// at is the path of the agent.
const at = "/a2a"

// beat is the interval of comments on an idle stream.
const beat = 15 * time.Second

// Mounts returns the mounts of an agent for one server.
func Mounts(cfg Config) map[string]serve.Mount {
	var h *house
	made := func(of *serve.Server) (serve.Handler, error) {
		if h == nil || h.of != of { // the first of the mounts
			var err error
			if h, err = newHouse(of, cfg); err != nil {
				return nil, err
			}
		}
		return h.serve, nil
	}
	card := a2asrv.WellKnownAgentCardPath
	return map[string]serve.Mount{"GET " + card: made, "GET " + at + "/{name}" + card: made, "POST " + at: made, at + "/": made}
}

// A house has one agent with all pipelines, and one for each pipeline. They share the notification receivers.
type house struct {
	*agent
	each map[string]*agent // by pipeline name
}

// taken has the path segments that the shared agent uses: a pipeline with such a name gets no agent.
var taken = map[string]bool{"tasks": true, "extendedAgentCard": true, "v1": true}

func newHouse(of *serve.Server, cfg Config) (*house, error) {
	pipelines, err := of.Pipelines()
	if err != nil {
		return nil, err
	}
	h := &house{&agent{of: of, cfg: cfg, at: at}, map[string]*agent{}}
	for _, p := range pipelines {
		s, err := skillOf(p)
		if err != nil {
			return nil, err
		}
		h.skills = append(h.skills, s)
	}
	if h.push, err = of.Receivers("a2a", cfg.Private, h.notice); err != nil {
		return nil, err
	}
	for _, s := range h.skills {
		if !taken[s.Name] {
			h.each[s.Name] = h.below(s.Name, s)
		}
	}
	return h, nil
}

// below returns the agent of one pipeline.
func (h *house) below(name string, skills ...skill) *agent {
	one := *h.agent
	one.skills, one.at = skills, at+"/"+name
	if len(h.skills) > 1 {
		one.cfg.Name, one.cfg.Description = "", "" // these describe all pipelines
	}
	return &one
}

// serve serves the agent that the path of a request names.
func (h *house) serve(w http.ResponseWriter, r *http.Request, who serve.Principal) {
	path := strings.TrimPrefix(r.URL.Path, at)
	name, below, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	a := h.each[name]
	switch {
	case a != nil:
		path = "/" + below
	case r.PathValue("name") != "" && !reads(who): // do not reveal whether the pipeline exists
		a, path = h.below(name), "/"+below
	default:
		a = h.agent
	}
	body, err := io.ReadAll(r.Body)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) { // the SDK would call it a parse error
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is too large: want at most %d bytes, and the URLs of large files", large.Limit))
		return
	}
	// A page from another origin can send a few content types without a preflight. A request without a type is not from a
	// browser.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(body) > 0 && (err != nil && r.Header.Get("Content-Type") != "" || err == nil && kind != jsonMode && kind != "application/a2a+json") {
		refuse(w, http.StatusUnsupportedMediaType, fmt.Sprintf("the body is of type %q: want %s", r.Header.Get("Content-Type"), jsonMode))
		return
	}
	to := *r.URL
	to.Path, to.RawPath = path, ""
	r = r.WithContext(context.WithValue(context.WithValue(r.Context(), callerKey{}, a.as(who)), baseKey{}, a.baseOf(r)))
	r.URL, r.Body = &to, io.NopCloser(bytes.NewReader(body))
	a.handler(path, body).ServeHTTP(flusher{w}, r)
}

// handler chooses the handler for a request. Clients of version 0.3 use methods with a slash or paths below /v1.
func (a *agent) handler(path string, body []byte) http.Handler {
	alive := a2asrv.WithTransportKeepAlive(beat)
	if path == a2asrv.WellKnownAgentCardPath {
		return http.HandlerFunc(a.serveCard)
	}
	if path != "" && path != "/" {
		if strings.HasPrefix(path, a2av0.RESTPathPrefix+"/") {
			return a2av0.NewRESTHandler(a, alive)
		}
		return a2asrv.NewRESTHandler(a, alive)
	}
	var call struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(body, &call) == nil && strings.Contains(call.Method, "/") {
		return a2av0.NewJSONRPCHandler(a, alive)
	}
	return a2asrv.NewJSONRPCHandler(a, alive)
}

// refuse replies with a protocol error over REST.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", jsonMode)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "status": "INVALID_ARGUMENT", "message": text}}) // an error means that the client is gone
}

// flusher turns a writer that unwraps to an http.Flusher into one, as the SDK requires.
type flusher struct{ http.ResponseWriter }

func (f flusher) Unwrap() http.ResponseWriter { return f.ResponseWriter }
func (f flusher) Flush()                      { _ = http.NewResponseController(f.ResponseWriter).Flush() } // an error means that the client is gone

// An agent implements a2asrv.RequestHandler over the API of a server, which keeps everything.
type agent struct {
	at     string // its path
	of     *serve.Server
	cfg    Config
	skills []skill
	push   *serve.Receivers
}

var _ a2asrv.RequestHandler = (*agent)(nil)

// caller is the API on behalf of a request's caller.
type caller struct {
	inside.Client
	who    serve.Principal
	skills []skill
}

func (a *agent) as(who serve.Principal) caller { return caller{inside.As(a.of, who), who, a.skills} }

type callerKey struct{}

func callerOf(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// failure translates an API error to the protocol.
func failure(err error) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok {
		return err
	}
	kind := sdk.ErrInternalError
	switch p.Status {
	case http.StatusNotFound:
		return sdk.ErrTaskNotFound
	case http.StatusUnauthorized:
		kind = sdk.ErrUnauthenticated
	case http.StatusForbidden:
		kind = sdk.ErrUnauthorized
	case http.StatusConflict:
		kind = sdk.ErrUnsupportedOperation
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		kind = sdk.ErrServerError
	default:
		if p.Status < 500 {
			kind = sdk.ErrInvalidParams
		}
	}
	return sdk.NewError(kind, cmp.Or(p.Detail, p.Title))
}

func invalid(text string) error { return sdk.NewError(sdk.ErrInvalidParams, text) }

// baseOf returns the server's address as the sender of a request sees it.
func (a *agent) baseOf(r *http.Request) string {
	if a.cfg.URL != "" {
		return strings.TrimSuffix(a.cfg.URL, "/")
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
