package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

var (
	order    = servetest.Order
	draft    = servetest.Draft
	approval = servetest.Approval
	page     = servetest.Page
)

// house is a server of small pipelines over a journal in memory.
type house struct {
	*testing.T
	*servetest.Server
	*servetest.Steps
	journal *sqlite.DB
	hooks   []serve.Webhook
	changed bool         // the next server has another pipeline "page"
	lines   atomic.Int32 // of the log
}

func newHouse(t *testing.T, access serve.Access, hooks ...serve.Webhook) *house {
	h := &house{T: t, Steps: servetest.NewSteps(), hooks: hooks, journal: memdb.New(t)}
	h.open(access)
	return h
}

// open starts a server over the journal of the house.
func (h *house) open(access serve.Access) {
	whole := h.Publish()
	if h.changed {
		whole = h.Publish(stone.Func("more", page, draft, func(context.Context, string) (string, error) { return "", nil }))
	}
	h.Server = serveAll(h, serve.Config{Journal: h.journal, Access: access, Webhooks: h.hooks, URL: "https://stone.example.com/", Log: slog.New(h), Pipelines: []serve.Pipeline{
		{Name: "draft", Ashlar: h.Write()}, {Name: "page", Ashlar: whole}, {Name: "slow", Ashlar: h.Slow()},
	}})
}

// Handle counts the lines of the log.
func (h *house) Handle(_ context.Context, r slog.Record) error {
	h.lines.Add(1)
	return nil
}

func (h *house) Enabled(context.Context, slog.Level) bool { return true }
func (h *house) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *house) WithGroup(string) slog.Handler            { return h }

// do sends a request and returns the status and the body.
func (h *house) do(method, path, body string, header ...string) (int, string) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// want sends a request and checks the status and a part of the body.
func (h *house) want(method, path, body string, status int, part string) string {
	h.Helper()
	got, text := h.do(method, path, body)
	if got != status || !strings.Contains(text, part) {
		h.Fatalf("%s %s: %d %s, want %d with %s", method, path, got, text, status, part)
	}
	return text
}

func (h *house) run(text string) (r api.Run) {
	h.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		h.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"},"labels":{"who":"x"}}`, 201, `"id":"a"`)
	done := h.run(h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"state":"done"`))
	if done.Result == nil || string(done.Result.Content) != `"About marble"` || done.Result.Type != "draft" {
		t.Errorf("the result is %+v", done.Result)
	}
	h.want("GET", "/v1/runs/a/nodes/"+done.Result.ID.String(), "", 200, `"About marble"`)
	h.want("PUT", "/v1/runs/a", `{"input":{"text":"marble"},  "pipeline":"draft","labels":{"who":"x"}}`, 200, `"state":"done"`)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"slate"}}`, 409, `"type":"conflict"`)
	if n := h.Written.Load(); n != 1 {
		t.Errorf("%d drafts were written, want 1", n)
	}
	h.want("GET", "/v1/runs?pipeline=draft&label.who=x", "", 200, `"id":"a"`)
	h.want("GET", "/v1/runs?pipeline=page", "", 200, `"runs":[]`)
	h.want("POST", "/v1/runs/a/resume", "", 409, "the run is done")
	h.want("POST", "/v1/runs/a/cancel", "", 409, "the run is already done")
	h.want("DELETE", "/v1/runs/a", "", 204, "")
	h.want("PUT", "/v1/runs/long", `{"pipeline":"slow","input":{"text":"x"}}`, 201, "")
	h.want("DELETE", "/v1/runs/long", "", 409, "cancel it first")
	h.want("POST", "/v1/runs/long/cancel", "", 200, `"canceled"`)
	h.want("DELETE", "/v1/runs/long", "", 204, "")
	h.want("GET", "/v1/runs/a", "", 404, `"type":"not-found"`)
}

func TestFailedRun(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"bad"}}`, 201, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"failure":{"kind":"refused","reason":"not this text","path":"write"}`)
	h.want("POST", "/v1/runs/a/resume", "", 202, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"state":"failed"`)
	if n := h.Written.Load(); n != 2 {
		t.Errorf("%d drafts were tried, want 2", n)
	}
}

func TestRefusedRequests(t *testing.T) {
	h := newHouse(t, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"PUT", "/v1/runs/a", `{"pipeline":"drafts"}`, 404, `did you mean \"draft\"?`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft"}`, 422, `the input \"order\" is missing`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":1}}`, 422, `text: want string`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","inputs":1}`, 400, `unknown member`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"},"budget":{"seconds":-1}}`, 422, `want 0 to 9000000000`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"},"budget":{"seconds":1e-10}}`, 422, `budget/exhausted`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"},"budget":{"seconds":9.3e9}}`, 422, `want 0 to 9000000000`},
		{"PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"},"budget":{"usd":-0.5}}`, 422, `want 0 or more`},
		{"PUT", "/v1/runs/a", `{} {}`, 400, `after top-level value`},
		{"PUT", "/v1/runs/a", ``, 400, `cannot be read`},
		{"PUT", "/v1/runs/..a", `{}`, 422, `the id`},
		{"PUT", "/v1/runs/a", `{"pipeline":"` + strings.Repeat("x", 9<<20) + `"}`, 413, `longer than`},
		{"PATCH", "/v1/runs/a", ``, 405, `no-such-path`},
		{"GET", "/v1/runs/zzz/events", ``, 404, `no such run`},
		{"GET", "/v1/runs?sort=x", ``, 400, `unknown parameter`},
		{"POST", "/v1/runs?wait=5s", `{"pipeline":"draft"}`, 400, `unknown parameter \"wait\": want none here`},
		{"GET", "/v1/pipelines?limit=1", ``, 400, `unknown parameter`},
		{"GET", "/v1/runs?limit=0", ``, 400, `want 1 to 1000`},
		{"GET", "/v1/runs?since=x", ``, 400, `since`},
		{"POST", "/v1/runs/zzz/answers", `{"question":"q","response":"r"}`, 404, `no such run`},
	} {
		h.want(tt.method, tt.path, tt.body, tt.status, tt.part)
	}
}

func TestQuestion(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	h.want("GET", "/v1/questions", "", 200, `"text":"Publish About marble?","choices":["yes","no"]`)
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approv","response":"yes"}`, 404, "asks no question")
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"perhaps"}`, 422, "perhaps")
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"yes"}`, 200, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"content":"yes: About marble"`)
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"no"}`, 409, "answered")
	if n := h.Written.Load(); n != 1 {
		t.Errorf("%d drafts were written, want 1", n)
	}
}

// The same request, sent by many at once, is one run.
func TestSameRequestAtOnce(t *testing.T) {
	h := newHouse(t, nil)
	var all sync.WaitGroup
	var created atomic.Int32
	for range 1000 {
		all.Go(func() {
			switch status, text := h.do("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`); status {
			case 201:
				created.Add(1)
			case 200:
			default:
				t.Errorf("%d %s", status, text)
			}
		})
	}
	all.Wait()
	if created.Load() != 1 || h.Written.Load() != 1 {
		t.Errorf("%d runs were created, %d drafts written, want 1", created.Load(), h.Written.Load())
	}
}

// lateFind is a journal in which the first search for a run answers late.
type lateFind struct {
	journal.Journal
	later         atomic.Bool
	asked, answer chan struct{}
}

func (l *lateFind) Find(ctx context.Context, id string) (info journal.RunInfo, err error) {
	info, err = l.Journal.Find(ctx, id)
	if !l.later.Swap(true) {
		close(l.asked)
		<-l.answer
	}
	return info, err
}

// TestSameRequestAfterTheRun: of two equal requests, the run of the first begins and ends after the
// second one has looked for it. The second has created nothing.
func TestSameRequestAfterTheRun(t *testing.T) {
	h := newHouse(t, nil)
	late := &lateFind{Journal: h.journal, asked: make(chan struct{}), answer: make(chan struct{})}
	h.Server.Stop()
	h.Server = serveAll(t, serve.Config{Journal: late, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}}})
	answer := sync.OnceFunc(func() { close(late.answer) })
	t.Cleanup(answer)
	const body = `{"pipeline":"draft","input":{"text":"marble"}}`
	second := make(chan int)
	go func() {
		status, _ := h.do("PUT", "/v1/runs/a", body)
		second <- status
	}()
	<-late.asked
	h.want("PUT", "/v1/runs/a", body, 201, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"About marble"`)
	answer()
	if status := <-second; status != 200 || h.Written.Load() != 1 {
		t.Errorf("the second request has status %d, and %d drafts were written: want 200 and 1", status, h.Written.Load())
	}
}

func TestCancel(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"slow","input":{"text":"x"}}`, 201, `"state":"running"`)
	h.want("POST", "/v1/runs/a/cancel", "", 200, `"state":"canceled"`)
	h.want("PUT", "/v1/runs/b", `{"pipeline":"page","input":{"text":"x"}}`, 201, `"id":"b"`)
	h.want("GET", "/v1/runs/b/result?wait=30s", "", 202, `"state":"waiting"`)
	h.want("POST", "/v1/runs/b/cancel", "", 200, `"state":"canceled"`)
}

// events reads a stream until it ends, or n events were read: with 0, the place at which it
// begins.
func (h *house) events(ctx context.Context, path, after string, n int) (ids, kinds []string) {
	h.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", h.URL+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		h.Fatalf("the stream has status %d", resp.StatusCode)
	}
	for lines := bufio.NewScanner(resp.Body); (len(kinds) < n || len(ids)+n == 0) && lines.Scan(); {
		if id, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: ")); ok {
			ids = append(ids, string(id))
		}
		if kind, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
			kinds = append(kinds, string(kind))
		}
	}
	return ids, kinds
}

func TestEvents(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	ids, kinds := h.events(t.Context(), "/v1/runs/a/events", "", 3)
	if len(ids) == 0 || kinds[0] != "step" {
		t.Fatalf("got %v, %v", ids, kinds)
	}
	answered := make(chan struct{})
	var more []string
	go func() {
		defer close(answered)
		more, kinds = h.events(t.Context(), "/v1/runs/a/events", ids[0], 1000)
	}()
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"yes"}`, 200, "")
	<-answered
	all, _ := h.events(t.Context(), "/v1/runs/a/events", "", 1000)
	more = slices.DeleteFunc(more, func(id string) bool { return strings.Contains(id, "-") && !strings.HasSuffix(id, "-done") }) // it is over
	if got := fmt.Sprint(append(ids[:1], more...)); got != fmt.Sprint(all) {
		t.Errorf("the stream that was cut has %v, the whole one %v", got, all)
	}
	if kinds[len(kinds)-1] != "state" {
		t.Errorf("the stream ends with %v", kinds)
	}
}

// tenants gives each tenant what it asks for in a header.
type tenants struct{}

func (tenants) Principal(r *http.Request) (serve.Principal, error) {
	switch name := r.Header.Get("X-Tenant"); name {
	case "":
		return serve.Principal{}, fmt.Errorf("who are you?")
	case "reader":
		return serve.Principal{Tenant: "acme", Roles: []serve.Role{serve.Read}}, nil
	default:
		return serve.Principal{Tenant: name}, nil
	}
}

func TestTenants(t *testing.T) {
	h := newHouse(t, tenants{})
	h.want("GET", "/v1/runs", "", 401, "who are you?")
	as := func(tenant, method, path, body string, want int) string {
		t.Helper()
		status, text := h.do(method, path, body, "X-Tenant", tenant)
		if status != want {
			t.Errorf("%s %s by %s: %d %s, want %d", method, path, tenant, status, text, want)
		}
		return text
	}
	req := `{"pipeline":"page","input":{"text":"marble"},"labels":{"tenant":"globex"}}`
	as("acme", "PUT", "/v1/runs/a", req, 201)
	as("globex", "PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"slate"}}`, 201) // the id is free for it
	if text := as("acme", "GET", "/v1/runs/a/result?wait=30s", "", 202); !strings.Contains(text, `"id":"a"`) {
		t.Errorf("the run is %s", text)
	}
	as("initech", "GET", "/v1/runs/a", "", 404)
	as("initech", "GET", "/v1/runs/acme.a", "", 404)
	as("reader", "GET", "/v1/runs/a", "", 200)
	as("reader", "POST", "/v1/runs/a/cancel", "", 403)
	as("globex", "GET", "/v1/runs/a/result?wait=30s", "", 202)
	if text := as("globex", "GET", "/v1/questions", "", 200); strings.Contains(text, "marble") || !strings.Contains(text, "slate") {
		t.Errorf("globex sees %s", text)
	}
	if text := as("initech", "GET", "/v1/runs", "", 200); !strings.Contains(text, `"runs":[]`) {
		t.Errorf("initech sees %s", text)
	}
}

// A server that starts resumes what another one has left.
func TestGoesOn(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	// Someone answers in the journal, as the command answer does.
	if err := journal.Answer(t.Context(), h.journal, "a", "approve", ask.Answer{Response: "no"}); err != nil {
		t.Fatal(err)
	}
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"content":"no: About marble"`)
}

func TestForeignHost(t *testing.T) {
	h := newHouse(t, nil)
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:80", "", 404}, {"localhost", "", 404}, {"[::1]:80", "", 404}, {"evil.example", "", 421},
		{"localhost", "http://evil.example", 403}, {"localhost", "http://localhost", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/v1/runs/none/cancel", nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = tt.host; tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("host %q, origin %q: %d, want %d", tt.host, tt.origin, resp.StatusCode, tt.want)
		}
	}
}
