package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// client sends requests to the API of a server in this process, as a caller.
type client struct {
	api   http.Handler
	model http.Handler // the same, for answers of the model of the caller
}

func clientOf(of *serve.Server, who serve.Principal) client {
	model := who
	model.By = "the model of " + cmp.Or(who.By, who.Name, "an unknown client")
	return client{of.As(who), of.As(model)}
}

// do sends a request and reads the reply into out. The error of a refused request is an
// *api.Problem.
func (c client) do(ctx context.Context, method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w := &reply{}
	if err := c.send(ctx, w, method, path, bytes.NewReader(text)); err != nil {
		return err
	}
	if w.status >= 300 {
		problem := &api.Problem{Status: w.status}
		if json.Unmarshal(w.body.Bytes(), problem) != nil {
			problem.Detail = "no such thing"
		}
		return problem
	}
	return json.Unmarshal(w.body.Bytes(), out)
}

func (c client) send(ctx context.Context, w *reply, method, path string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return err
	}
	w.header, w.status = http.Header{}, http.StatusOK
	c.api.ServeHTTP(w, r)
	return nil
}

func (c client) start(ctx context.Context, pipeline string, input json.RawMessage) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodPost, "/v1/runs", api.Start{Pipeline: pipeline, Input: input}, &r)
}

func (c client) run(ctx context.Context, id string) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodGet, runPath(id), nil, &r)
}

// result returns the run when it has stopped, or after the wait.
func (c client) result(ctx context.Context, id string, wait time.Duration) (r api.Run, err error) {
	err = c.do(ctx, http.MethodGet, runPath(id)+"/result?wait="+wait.String(), nil, &r)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Run != nil { // it is refused
		return *p.Run, nil
	}
	return r, err
}

func (c client) cancel(ctx context.Context, id string) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodPost, runPath(id)+"/cancel", nil, &r)
}

func (c client) answer(ctx context.Context, id string, a api.Answer) error {
	return c.do(ctx, http.MethodPost, runPath(id)+"/answers", a, new(api.Run))
}

// questions returns the open questions of a run.
func (c client) questions(ctx context.Context, id string) (open []api.Question, err error) {
	var all api.Questions
	if err := c.do(ctx, http.MethodGet, runPath(id)+"/questions", nil, &all); err != nil {
		return nil, err
	}
	for _, q := range all.Questions {
		if q.Answered.IsZero() {
			open = append(open, q)
		}
	}
	return open, nil
}

func (c client) node(ctx context.Context, run, node string) (n api.Node, err error) {
	return n, c.do(ctx, http.MethodGet, runPath(run)+"/nodes/"+url.PathEscape(node), nil, &n)
}

// follow calls each with the events of a run until it is over or ctx ends.
func (c client) follow(ctx context.Context, run string, each func(api.Event)) {
	w := &reply{frame: func(data []byte) {
		var e api.Event
		if json.Unmarshal(data, &e) == nil {
			each(e)
		}
	}}
	_ = c.send(ctx, w, http.MethodGet, runPath(run)+"/events", http.NoBody) // only a path that cannot be read is an error
}

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

// reply is the http.ResponseWriter of a request within the process. With frame it calls
// that with the data of each server-sent event and keeps nothing.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
	frame  func(data []byte)
}

func (w *reply) Header() http.Header    { return w.header }
func (w *reply) WriteHeader(status int) { w.status = status }
func (w *reply) Flush()                 {}

func (w *reply) Write(p []byte) (int, error) {
	n, _ := w.body.Write(p)
	if w.frame == nil {
		return n, nil
	}
	for {
		frame, rest, ok := strings.Cut(w.body.String(), "\n\n")
		if !ok {
			return n, nil
		}
		w.body.Reset()
		w.body.WriteString(rest)
		for line := range strings.Lines(frame) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				w.frame([]byte(data))
			}
		}
	}
}
