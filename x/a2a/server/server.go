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

// Config describes the agent to clients. The zero value is valid.
type Config struct {
	Name        string // name of the agent; empty means the name of the only pipeline, or "stone"
	Description string // description of the agent; empty means the description of the only pipeline, or a list of all pipelines
	Version     string // version of the agent; empty means "1"
	// URL is the public address of the server, without a path. If it is empty, the card contains the host of the request, with
	// https if a proxy has set X-Forwarded-Proto.
	URL string
	// Private allows receivers of notifications to be outside the public Internet and to use http.
	Private bool
}

// at is the path of the agent.
const at = "/a2a"

// beat is the interval between comments on an idle stream.
const beat = 15 * time.Second

// Mounts returns the mounts that serve the agents, for serve.Config.Mounts. Call it once for each server.
func Mounts(cfg Config) map[string]serve.Mount {
	var h *house
	made := func(of *serve.Server) (serve.Handler, error) {
		if h == nil || h.of != of { // this is the first of the mounts
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

// A house contains the agents of a server: the common agent with all pipelines, and one agent for each pipeline. They share the
// receivers of notifications.
type house struct {
	*agent
	each map[string]*agent // agents by pipeline name
}

// taken contains the path segments that the common agent uses: a pipeline with such a name gets no agent of its own.
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

// below returns the agent of a single pipeline.
func (h *house) below(name string, skills ...skill) *agent {
	one := *h.agent
	one.skills, one.at = skills, at+"/"+name
	if len(h.skills) > 1 {
		one.cfg.Name, one.cfg.Description = "", "" // the configured texts describe all pipelines
	}
	return &one
}

// serve handles a request to the agent that the path names.
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
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) { // the SDK would report a parse error
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is too large: want at most %d bytes, and the URLs of large files", large.Limit))
		return
	}
	// A page of another origin can send requests with a few content types without a preflight. A request without a content type
	// does not come from a browser.
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

// handler returns the handler for a request. Clients of version 0.3 use methods that contain a slash, or paths below /v1.
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

// refuse replies with an error of the REST protocol.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", jsonMode)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "status": "INVALID_ARGUMENT", "message": text}}) // an error means that the client is gone
}

// flusher makes an http.Flusher of a writer that unwraps to one, because the SDK requires it.
type flusher struct{ http.ResponseWriter }

func (f flusher) Unwrap() http.ResponseWriter { return f.ResponseWriter }
func (f flusher) Flush()                      { _ = http.NewResponseController(f.ResponseWriter).Flush() } // an error means that the client is gone

// An agent implements a2asrv.RequestHandler with the API of a server. All of its state is stored by the server.
type agent struct {
	at     string // path of the agent
	of     *serve.Server
	cfg    Config
	skills []skill
	push   *serve.Receivers
}

var _ a2asrv.RequestHandler = (*agent)(nil)

// caller calls the API on behalf of a request's sender.
type caller struct {
	inside.Client
	who    serve.Principal
	skills []skill
}

func (a *agent) as(who serve.Principal) caller { return caller{inside.As(a.of, who), who, a.skills} }

type callerKey struct{}

func callerOf(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// failure converts an API error to an error of the protocol.
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

// baseOf returns the address at which the sender of a request has reached the server.
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
