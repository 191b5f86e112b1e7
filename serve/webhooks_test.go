package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

const (
	newSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	oldSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

// receiver gets webhooks.
type receiver struct {
	*testing.T
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []delivered
	tries  int
}

type delivered struct {
	ID      string            `json:"id"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	notice  api.Notice
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{T: t, status: 200}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tries++
		if r.status == 200 {
			d := delivered{ID: req.Header.Get("webhook-id"), Body: string(body), Headers: map[string]string{}}
			for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
				d.Headers[name] = req.Header.Get(name)
			}
			if err := json.Unmarshal(body, &d.notice); err != nil {
				t.Error(err)
			}
			r.got = append(r.got, d)
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Server.Close)
	return r
}

func (r *receiver) set(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.tries = status, 0
}

// await waits for n accepted notices, or for n attempts while the status is an error.
func (r *receiver) await(n int) []delivered {
	r.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		got, enough := slices.Clone(r.got), r.status != 200 && r.tries >= n
		r.mu.Unlock()
		if len(got) >= n || enough {
			return got
		}
		if time.Since(start) > 30*time.Second {
			r.Fatalf("%d notices, want %d: %+v", len(got), n, got)
		}
	}
}

func (r *receiver) hook() serve.Webhook {
	return serve.Webhook{Name: "ops", URL: r.URL, Secrets: []string{newSecret, oldSecret}, Private: true}
}

func TestWebhooks(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	asked := r.await(1)[0]
	if q := asked.notice.Question; asked.notice.Type != "question.asked" || q == nil || q.Run != "a" || q.Path != "page/approve" {
		t.Errorf("got %+v", asked)
	}
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"yes"}`, 200, "")
	h.want("PUT", "/v1/runs/b", `{"pipeline":"draft","input":{"text":"bad"}}`, 201, "")
	types := map[string]string{}
	h.want("PUT", "/v1/runs/w", `{"pipeline":"page","input":{"text":"slate"}}`, 201, "")
	r.await(4)
	h.want("POST", "/v1/runs/w/cancel", "", 200, `"state":"canceled"`)
	for _, d := range r.await(5)[1:] {
		if d.notice.Question != nil {
			continue
		}
		types[d.notice.Run.ID] = d.notice.Type
		if d.notice.Run.Result != nil {
			t.Errorf("the notice has the result: %s", d.Body)
		}
	}
	if len(types) != 3 || types["a"] != "run.done" || types["b"] != "run.failed" || types["w"] != "run.canceled" {
		t.Errorf("got %v", types)
	}
	// The runs that send notices cannot be started by anyone, and have no secret.
	h.want("PUT", "/v1/runs/c", `{"pipeline":"webhook/ops","input":{"id":"x","body":"{}"}}`, 404, "")
	h.want("POST", "/v1/responses", `{"model":"stone/webhook/ops","input":"x"}`, 404, "")
	text := h.want("GET", "/v1/runs?pipeline=webhook/ops", "", 200, `"pipeline":"webhook/ops"`)
	if strings.Contains(text, newSecret[6:]) || strings.Contains(text, r.URL) {
		t.Error(text)
	}
}

// The client of OpenAI accepts the signatures of both secrets, and rejects a changed body.
func TestWebhookSignatures(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	h.want("PUT", "/v1/runs/b", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	all := r.await(2)
	dir := filepath.Dir(filepath.Dir(peer.Module(t, "openai")))
	program, err := os.Open("testdata/webhooks.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin = dir, program
	cmd.Env = append(os.Environ(), "NOTICES="+string(text), "SECRETS="+newSecret+" "+oldSecret, "OPENAI_API_KEY=none")
	out, err := cmd.CombinedOutput()
	if want := strings.Repeat("ok ok refused\n", len(all)); err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}

// The next server retries a notice that was not accepted, with the same id, and sends the
// notices of runs that ended in a process without webhooks.
func TestWebhookAfterRestart(t *testing.T) {
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(2) // it is tried again by this server
	h.Stop()
	// This run ends in a process that knows no webhook.
	h.hooks = nil
	h.open(nil)
	info, err := h.journal.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	info.ID, info.State, info.Outcome = "b", journal.Running, journal.Outcome{}
	h.put(info)
	h.Stop()
	r.set(200)
	h.hooks = []serve.Webhook{r.hook()}
	h.open(nil)
	ids := map[string]bool{}
	for _, d := range r.await(2) {
		if ids[d.ID] {
			t.Errorf("%s came twice", d.ID)
		}
		ids[d.ID] = true
		if d.notice.Type != "run.done" && d.notice.Type != "run.failed" {
			t.Errorf("got %s", d.Body)
		}
	}
	h.Stop()
	h.open(nil) // which has nothing to send
	h.want("PUT", "/v1/runs/c", `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
	if got := r.await(3); got[2].notice.Run.ID != "c" {
		t.Errorf("got %+v", got)
	}
}

// put stores a run that has ended in another process.
func (h *house) put(info journal.RunInfo) {
	h.Helper()
	ctx := h.Context()
	if _, err := h.journal.Acquire(ctx, info.ID); err != nil {
		h.Fatal(err)
	}
	if err := h.journal.Begin(ctx, info, dag.DAG{}); err != nil {
		h.Fatal(err)
	}
	if err := h.journal.End(ctx, info.ID, journal.Outcome{State: journal.Failed, Ended: time.Now(), Failure: &journal.Failure{Kind: "x"}}); err != nil {
		h.Fatal(err)
	}
	if err := h.journal.Release(info.ID); err != nil {
		h.Fatal(err)
	}
}

// A server finds the notices of another one that died, also those that are older than its last
// search.
func TestWebhookOfDeadServer(t *testing.T) {
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.Stop()
	s, err := serve.New(serve.Config{Journal: h.journal, Webhooks: h.hooks, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.FindUnsent(t.Context(), time.Now()); err != nil || s.Unsent() != 1 {
		t.Errorf("%d notices, want 1: %v", s.Unsent(), err)
	}
}

// A search of the last hour finds a run that ended in that hour, however long ago it started. So
// any server sends the notice, even if the one that ran it stays down.
func TestWebhookOfLongRun(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	info, err := h.journal.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	info.ID, info.Started, info.Outcome = "b", time.Now().Add(-5*time.Hour), journal.Outcome{State: journal.Running}
	h.put(info)
	if err := h.Server.FindUnsent(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := r.await(2); got[1].notice.Run.ID != "b" {
		t.Errorf("got %+v", got)
	}
}

// A receiver that is gone gets nothing more, and the notice is counted as dropped once.
func TestWebhookGone(t *testing.T) {
	r := newReceiver(t)
	r.set(410)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.until("/metrics", `stone_webhooks_total{result="dropped"} 1`)
	for range 10 {
		if err := h.Server.FindUnsent(t.Context(), time.Time{}); err != nil || h.Server.Unsent() > 0 {
			t.Errorf("%d notices wait, want none: %v", h.Server.Unsent(), err)
		}
	}
	h.want("GET", "/metrics", "", 200, `stone_webhooks_total{result="dropped"} 1`)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries != 1 {
		t.Errorf("%d tries", r.tries)
	}
}

// A receiver that is down costs a few runs, whatever the number of notices. When it is up again all
// come, also those of a server that ended meanwhile, and no list shows them unless it is asked to.
func TestWebhookDown(t *testing.T) {
	const runs = 40
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	start := func(from, n int) {
		for i := range n {
			h.want("PUT", fmt.Sprint("/v1/runs/", from+i), `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
			h.want("GET", fmt.Sprint("/v1/runs/", from+i, "/result?wait=30s"), "", 200, `"done"`)
		}
	}
	start(0, 3)
	r.await(3)
	time.Sleep(10 * time.Millisecond) // until the server has read the third refusal
	start(3, runs-3)
	h.Stop()
	r.set(503)
	h.open(nil)
	r.await(3)
	time.Sleep(10 * time.Millisecond)
	start(runs, runs)
	sent, err := h.journal.Runs(t.Context(), journal.Query{Pipeline: "webhook/ops", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sent); n > runs { // with some to spare: 3, and those that were tried meanwhile
		t.Errorf("%d runs were made for a receiver that is down", n)
	}
	r.set(200)
	about := map[string]int{}
	for _, d := range r.await(2 * runs) {
		about[d.notice.Run.ID]++
	}
	if len(about) != 2*runs {
		t.Errorf("notices of %d runs came, want %d: %v", len(about), 2*runs, about)
	}
	if text := h.want("GET", "/v1/runs?limit=1000", "", 200, `"draft"`); strings.Contains(text, "webhook/") {
		t.Error("the list has notices")
	}
}

// Of several servers one makes each attempt, so that the receiver gets no more of them than from one server.
func TestWebhookOfServers(t *testing.T) {
	r := newReceiver(t)
	r.set(400) // read and not wanted: the receiver is not down
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.Stop()
	var servers [2]*serve.Server
	for i := range servers {
		s, err := serve.New(serve.Config{Journal: h.journal, Webhooks: h.hooks, Scan: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.FindUnsent(t.Context(), time.Now()); err != nil || s.Unsent() != 1 {
			t.Fatalf("%d notices, want 1: %v", s.Unsent(), err)
		}
		servers[i] = s
	}
	r.set(400)
	tries := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.tries
	}
	for tries() == 0 {
		servers[0].SendAgain(t.Context())
		time.Sleep(time.Millisecond)
	}
	for servers[0].Unsent() == 0 { // until its attempt is recorded
		time.Sleep(time.Millisecond)
	}
	before := tries()
	servers[1].SendAgain(t.Context())
	if n := servers[1].Unsent(); n != 1 || tries() != before {
		t.Errorf("the second server tries again what the first one has just tried: %d notices wait, %d attempts after %d", n, tries(), before)
	}
}

// A clock that is set back holds no notice up.
func TestWebhookOfFuture(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.Stop()
	sent, err := h.journal.Runs(t.Context(), journal.Query{Pipeline: "webhook/ops"})
	if err != nil || len(sent) != 1 {
		t.Fatal(sent, err)
	}
	input, err := journal.Input(t.Context(), h.journal, sent[0])
	if err != nil {
		t.Fatal(err)
	}
	late := sent[0]
	late.ID, late.Started, late.Outcome = "late", time.Now().Add(24*time.Hour), journal.Outcome{}
	_, err = h.journal.Acquire(t.Context(), late.ID)
	err = errors.Join(err, h.journal.Begin(t.Context(), late, input), h.journal.End(t.Context(), late.ID, journal.Outcome{State: journal.Failed, Ended: late.Started, Failure: &journal.Failure{Kind: "x"}}))
	if err != nil {
		t.Fatal(err)
	}
	h.open(nil)
	r.await(2)
}

// damagedQuestions is a journal that has damaged questions of a run.
type damagedQuestions struct{ *journal.Memory }

func (j damagedQuestions) Questions(ctx context.Context, run string) ([]journal.Question, error) {
	if run == "damaged" {
		return nil, &journal.DamageError{Run: run}
	}
	return j.Memory.Questions(ctx, run)
}

// A damaged run keeps its own notices back, and no others.
func TestWebhookOfDamagedRun(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	info, err := h.journal.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	h.Stop()
	info.Outcome = journal.Outcome{}
	info.ID = "b"
	h.put(info)
	info.ID = "damaged" // the newest
	_, err = h.journal.Acquire(t.Context(), info.ID)
	_, failed := h.journal.Ask(t.Context(), journal.Question{Run: info.ID, Path: "p", Name: "p", Asked: time.Now()})
	if err = errors.Join(err, failed, h.journal.Begin(t.Context(), info, dag.DAG{}), h.journal.End(t.Context(), info.ID, journal.Outcome{State: journal.Waiting, Ended: time.Now()})); err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(serve.Config{Journal: damagedQuestions{h.journal}, Webhooks: h.hooks, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.FindUnsent(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := r.await(2); got[1].notice.Run.ID != "b" {
		t.Errorf("got %+v", got)
	}
}

func TestWebhookSelection(t *testing.T) {
	r := newReceiver(t)
	hook := r.hook()
	hook.Pipelines, hook.Tenant = []string{"draft"}, "acme"
	h := newHouse(t, tenants{}, hook)
	for _, tenant := range []string{"globex", "acme"} {
		for _, body := range []string{`{"pipeline":"page","input":{"text":"x"}}`, `{"pipeline":"draft","input":{"text":"x"}}`} {
			_, text := h.do("POST", "/v1/runs", body, "X-Tenant", tenant)
			h.do("GET", "/v1/runs/"+h.run(text).ID+"/result?wait=30s", "", "X-Tenant", tenant)
		}
	}
	got := r.await(1)
	if got[0].notice.Run.Labels["tenant"] != "acme" || got[0].notice.Run.Pipeline != "draft" || strings.Contains(got[0].notice.Run.ID, ".") {
		t.Errorf("got %s", got[0].Body)
	}
	if _, text := h.do("GET", "/v1/runs?pipeline=webhook/ops", "", "X-Tenant", "globex"); !strings.Contains(text, `"runs":[]`) {
		t.Errorf("globex sees %s", text)
	}
}

func TestWebhookRefused(t *testing.T) {
	for want, w := range map[string]serve.Webhook{
		"want a name":         {URL: "https://example.com", Secrets: []string{newSecret}},
		"want one secret":     {Name: "a", URL: "https://example.com"},
		"want an https URL":   {Name: "a", URL: "http://example.com", Secrets: []string{newSecret}},
		"does not begin with": {Name: "a", URL: "https://example.com", Secrets: []string{"s3cret"}},
	} {
		_, err := serve.New(serve.Config{Journal: &journal.Memory{}, Webhooks: []serve.Webhook{w}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A caller who may remove its runs does not remove the evidence of notices.
func TestNoticesStay(t *testing.T) {
	h := newHouse(t, nil)
	if _, err := h.journal.Acquire(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	if err := h.journal.Begin(t.Context(), journal.RunInfo{ID: "n", Pipeline: "webhook/x", Started: time.Now()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	if err := h.journal.End(t.Context(), "n", journal.Outcome{State: journal.Done, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := h.journal.Release("n"); err != nil {
		t.Fatal(err)
	}
	h.want("DELETE", "/v1/runs/n", "", 409, "notice of a webhook")
	h.want("GET", "/v1/runs/n", "", 200, `"webhook/x"`)
}
