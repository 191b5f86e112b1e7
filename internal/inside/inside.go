// Package inside sends requests to the API of a server in the same process, on behalf of an authenticated caller. It is meant for
// protocols that are mounted on the server.
package inside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// A Client calls the API of a server on behalf of one caller. If the server refuses a request, the error is an *api.Problem.
type Client struct {
	api    http.Handler
	tenant string
}

// As returns a client that calls the server's API on behalf of a caller.
func As(of *serve.Server, who serve.Principal) Client { return Client{of.As(who), who.Tenant} }

// do sends a request and decodes the response into out.
func (c Client) do(ctx context.Context, method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w := &reply{}
	if err := c.send(ctx, w, method, path, bytes.NewReader(text)); err != nil {
		return err
	}
	if err := w.problem(); err != nil {
		return err
	}
	return json.Unmarshal(w.body.Bytes(), out)
}

// problem returns the error for a refused request.
func (w *reply) problem() error {
	if w.status < 300 {
		return nil
	}
	problem := &api.Problem{Status: w.status}
	if json.Unmarshal(w.body.Bytes(), problem) != nil {
		problem.Detail = "no such thing"
	}
	return problem
}

func (c Client) send(ctx context.Context, w *reply, method, path string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return err
	}
	w.header, w.status = http.Header{}, http.StatusOK
	c.api.ServeHTTP(w, r)
	return nil
}

// Start starts a run of a pipeline.
func (c Client) Start(ctx context.Context, pipeline string, input json.RawMessage) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodPost, "/v1/runs", api.Start{Pipeline: pipeline, Input: input}, &r)
}

// Put starts a run with the given ID. If the same request has already started the run, Put returns that run.
func (c Client) Put(ctx context.Context, id string, start api.Start) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodPut, runPath(id), start, &r)
}

// Runs returns one page of the runs that an API query selects.
func (c Client) Runs(ctx context.Context, query url.Values) (page api.Runs, err error) {
	return page, c.do(ctx, http.MethodGet, "/v1/runs?"+query.Encode(), nil, &page)
}

// Run returns the description of a run.
func (c Client) Run(ctx context.Context, id string) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodGet, runPath(id), nil, &r)
}

// Result returns the description of a run after it has stopped, or after the given time if the run has not stopped by then.
func (c Client) Result(ctx context.Context, id string, wait time.Duration) (r api.Run, err error) {
	err = c.do(ctx, http.MethodGet, runPath(id)+"/result?wait="+wait.String(), nil, &r)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Run != nil { // the request is refused
		return *p.Run, nil
	}
	return r, err
}

// Cancel cancels a run.
func (c Client) Cancel(ctx context.Context, id string) (r api.Run, err error) {
	return r, c.do(ctx, http.MethodPost, runPath(id)+"/cancel", nil, &r)
}

// Answer answers a question of a run.
func (c Client) Answer(ctx context.Context, id string, a api.Answer) error {
	return c.do(ctx, http.MethodPost, runPath(id)+"/answers", a, new(api.Run))
}

// Last returns the ID of a pipeline's newest ended run with a label, or "" if there is none. It considers only runs of the
// caller's tenant, even for a caller without a tenant, who can see all runs, because several tenants may use the same label.
func (c Client) Last(ctx context.Context, pipeline, label, value string) (string, error) {
	query := url.Values{"label." + label: {value}, "pipeline": {pipeline}, "state": {string(journal.Done), string(journal.Failed), string(journal.Canceled)}, "limit": {"16"}}
	for {
		page, err := c.Runs(ctx, query)
		if err != nil {
			return "", err
		}
		for _, run := range page.Runs {
			if run.Labels["tenant"] == c.tenant {
				return run.ID, nil
			}
		}
		if page.Next == "" {
			return "", nil
		}
		query.Set("before", page.Next)
	}
}

// Questions returns a run's open questions. If they are long, it returns only the first of them.
func (c Client) Questions(ctx context.Context, id string) ([]api.Question, error) {
	page, err := c.asked(ctx, id, url.Values{"open": {"true"}})
	return page.Questions, err
}

// mostAsked is the maximum size in bytes of the questions that Asked returns in full.
const mostAsked = 4 << 20

// Asked returns all questions that a run has asked. Once their size exceeds mostAsked, it omits long parts of the remaining
// questions.
func (c Client) Asked(ctx context.Context, id string) (all []api.Question, err error) {
	size := 0
	for query := (url.Values{}); ; {
		page, err := c.asked(ctx, id, query)
		for _, q := range page.Questions {
			if size += view.SizeOf(journal.Question(q)); size > mostAsked {
				q = api.Question(view.Brief(journal.Question(q)))
			}
			all = append(all, q)
		}
		if err != nil || page.Next == "" {
			return all, err
		}
		query.Set("from", page.Next)
	}
}

func (c Client) asked(ctx context.Context, id string, query url.Values) (page api.Questions, err error) {
	return page, c.do(ctx, http.MethodGet, runPath(id)+"/questions?"+query.Encode(), nil, &page)
}

// Node returns a node of a run.
func (c Client) Node(ctx context.Context, run, node string) (n api.Node, err error) {
	return n, c.do(ctx, http.MethodGet, runPath(run)+"/nodes/"+url.PathEscape(node), nil, &n)
}

// Follow calls each with the events of a run until the run ends, ctx is done or the server closes. If the request is refused, the
// error is an *api.Problem.
func (c Client) Follow(ctx context.Context, run string, each func(api.Event)) error {
	w := &reply{frame: func(data []byte) {
		var e api.Event
		if json.Unmarshal(data, &e) == nil {
			each(e)
		}
	}}
	if err := c.send(ctx, w, http.MethodGet, runPath(run)+"/events", http.NoBody); err != nil {
		return err
	}
	return w.problem()
}

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

// reply is the http.ResponseWriter of a request within the process. If frame is set, it is called with the data of each
// server-sent event, and the response is not kept.
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
