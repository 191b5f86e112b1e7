package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/page"
)

func problem(code string, status int, format string, args ...any) *api.Problem {
	return &api.Problem{Type: code, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *api.Problem {
	return problem(problems.Invalid, http.StatusUnprocessableEntity, format, args...)
}

func unreadable(format string, args ...any) *api.Problem {
	return problem(problems.Invalid, http.StatusBadRequest, format, args...)
}

func conflict(format string, args ...any) *api.Problem {
	return problem(problems.Conflict, http.StatusConflict, format, args...)
}

// refused returns the problem that reports that a run cannot continue because this server's pipeline has changed.
func refused(changes string) *api.Problem {
	return problem(problems.Refused, http.StatusConflict, "the pipeline changed since the run started: %s: serve the old pipeline too, or resume the run with {\"force\": true}: recorded results are kept", changes)
}

func notFound(format string, args ...any) *api.Problem {
	return problem(problems.NotFound, http.StatusNotFound, format, args...)
}

func closing() *api.Problem {
	return problem(problems.Unavailable, http.StatusServiceUnavailable, "the server is closing: send the request again")
}

func (s *Server) noPipeline(name string) *api.Problem {
	p := notFound("no pipeline %q is published: GET /v1/pipelines lists them", name)
	if near := s.similar(name); near != "" {
		p.Detail = fmt.Sprintf("no pipeline %q is published: did you mean %q?", name, near)
	}
	p.Type = problems.NoPipeline
	return p
}

// problemOf returns the problem that reports err to the caller. If err is not the caller's fault, it is logged, and the problem
// contains no details.
func (s *Server) problemOf(r *http.Request, err error) *api.Problem {
	var p *api.Problem
	var changed *journal.ChangedError
	var spent *budget.ExhaustedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, journal.ErrNoRun):
		return notFound("no such run")
	case errors.Is(err, journal.ErrNoNode):
		return notFound("no such node in the run")
	case errors.As(err, new(*journal.AmbiguousError)):
		return notFound("several ids start with this: give the whole id")
	case errors.As(err, new(*journal.HeldError)):
		return conflict("another process holds the run")
	case errors.As(err, &spent):
		return invalid("%v", spent)
	case errors.As(err, &changed):
		return refused(strings.Join(changed.Changes, "; "))
	case errors.As(err, new(*http.MaxBytesError)):
		return problem(problems.Invalid, http.StatusRequestEntityTooLarge, "the body is longer than %d bytes", maxBody)
	case errors.Is(err, journal.ErrUnavailable):
		return unavailable() // the health check logs the error
	case r.Context().Err() != nil:
		return problem(problems.Unavailable, http.StatusServiceUnavailable, "the client closed the request")
	}
	s.cfg.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "request", r.Header.Get(requestID), "error", err)
	return problem(problems.Internal, http.StatusInternalServerError, "the server failed; its log says why")
}

// fail replies with an error in the format that the client expects, such as a page for a browser.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, journal.ErrUnavailable) {
		w.Header().Set("Retry-After", retryAfter)
	}
	if errors.As(err, new(spentError)) {
		now := time.Now()
		_, tomorrow := budget.Day.Bounds(now)
		w.Header().Set("Retry-After", strconv.Itoa(int((tomorrow.Sub(now)+time.Second-1)/time.Second)))
	}
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	for _, p := range s.protocols {
		if p.Fail != nil && p.Fail(w, r, err, func(err error) *api.Problem { return s.problemOf(r, err) }) {
			return
		}
	}
	p = s.problemOf(r, err)
	if strings.Contains(r.Header.Get("Accept"), "text/html") { // a browser
		page.Fail(w, p)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // an error means that the client is gone
}
