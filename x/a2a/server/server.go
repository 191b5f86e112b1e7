package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
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
	// URL is the server's public address, without a path. Empty means the host of each request for the card,
	// with https if a proxy sets X-Forwarded-Proto.
	URL string
	// Private lets receivers of notifications be outside the public Internet, and use http.
	Private bool
}

// at is the path of the agent.
const at = "/a2a"

// beat is how often an idle stream gets a comment.
const beat = 15 * time.Second

// Mounts returns the mounts of an agent for one server.
func Mounts(cfg Config) map[string]serve.Mount {
	var a *agent
	made := func(h func(*agent) http.Handler) serve.Mount {
		return func(of *serve.Server) (serve.Handler, error) {
			if a == nil || a.of != of { // the first of the mounts
				var err error
				if a, err = newAgent(of, cfg); err != nil {
					return nil, err
				}
			}
			handler, mine := h(a), a
			return func(w http.ResponseWriter, r *http.Request, who serve.Principal) {
				body, err := io.ReadAll(r.Body)
				if large := (*http.MaxBytesError)(nil); errors.As(err, &large) { // the SDK would call it a parse error
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusRequestEntityTooLarge)
					fmt.Fprintf(w, `{"error": {"code": 413, "status": "INVALID_ARGUMENT", "message": "the request is too large: want at most %d bytes, and the URLs of large files"}}`, large.Limit)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				ctx := context.WithValue(context.WithValue(r.Context(), callerKey{}, mine.as(who)), baseKey{}, mine.baseOf(r))
				handler.ServeHTTP(flusher{w}, r.WithContext(ctx))
			}, nil
		}
	}
	alive := a2asrv.WithTransportKeepAlive(beat)
	return map[string]serve.Mount{
		"GET " + a2asrv.WellKnownAgentCardPath: made(func(a *agent) http.Handler { return http.HandlerFunc(a.serveCard) }),
		"POST " + at:                           made(func(a *agent) http.Handler { return a2asrv.NewJSONRPCHandler(a, alive) }),
		at + "/":                               made(func(a *agent) http.Handler { return http.StripPrefix(at, a2asrv.NewRESTHandler(a, alive)) }),
	}
}

// flusher is an http.Flusher, which the SDK wants, around a writer that only unwraps to one.
type flusher struct{ http.ResponseWriter }

func (f flusher) Unwrap() http.ResponseWriter { return f.ResponseWriter }
func (f flusher) Flush()                      { _ = http.NewResponseController(f.ResponseWriter).Flush() } // or the client has gone

// An agent implements a2asrv.RequestHandler over the API of a server, which keeps everything.
type agent struct {
	of     *serve.Server
	cfg    Config
	skills []skill
	push   *serve.Receivers
}

var _ a2asrv.RequestHandler = (*agent)(nil)

func newAgent(of *serve.Server, cfg Config) (*agent, error) {
	all, err := of.Pipelines()
	if err != nil {
		return nil, err
	}
	a := &agent{of: of, cfg: cfg}
	for _, p := range all {
		s, err := skillOf(p)
		if err != nil {
			return nil, err
		}
		a.skills = append(a.skills, s)
	}
	a.push, err = of.Receivers("a2a", cfg.Private, a.notice)
	return a, err
}

// caller is the API as the caller of a request.
type caller struct {
	inside.Client
	who    serve.Principal
	skills []skill
}

func (a *agent) as(who serve.Principal) caller { return caller{inside.As(a.of, who), who, a.skills} }

type callerKey struct{}

func callerOf(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// failure is an error of the API as one of the protocol.
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

// baseOf is the address of the server for the sender of a request.
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
