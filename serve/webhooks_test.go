package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
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
	if q := asked.notice.Question; asked.notice.Type != "question.asked" || asked.notice.URL != "https://stone.example.com/runs/a" || q == nil || q.Run != "a" || q.Path != "page/approve" {
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
	h.want("POST", "/v1/runs/b/resume", "", 202, `"id":"b"`)
	if d := r.await(6)[5]; d.notice.Run.ID != "b" || d.notice.Run.Attempt != 2 {
		t.Errorf("the second end of a run: %s, want attempt 2", d.Body)
	}
	if len(types) != 3 || types["a"] != "run.done" || types["b"] != "run.failed" || types["w"] != "run.canceled" {
		t.Errorf("got %v", types)
	}
	// A notice is no run.
	if text := h.want("GET", "/v1/runs?limit=1000", "", 200, `"page"`); strings.Count(text, `"id":`) != 3 || strings.Contains(text, newSecret[6:]) || strings.Contains(text, r.URL) {
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
	peer.Held(t, "openai", "signatures of webhooks")
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

// owed returns the notices that the journal owes, due or not.
func (h *house) owed() []owed.Notice {
	h.Helper()
	all, err := h.journal.Due(h.Context(), time.Now().Add(owed.LongestPause), nil, 1000)
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// A server that dies while it sends leaves the notice to the others, after a while.
func TestWebhookOfDeadServer(t *testing.T) {
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.Stop()
	if all := h.owed(); len(all) != 1 || len(all[0].Body) == 0 {
		t.Fatalf("the journal owes %+v", all)
	}
	n := h.owed()[0]
	tries := n.Tries
	n.Tries, n.Next = tries+1, time.Now().Add(200*time.Millisecond) // as claimed by the dead one
	if mine, err := h.journal.PutNotice(t.Context(), n, tries); err != nil || !mine {
		t.Fatal(mine, err)
	}
	r.set(200)
	h.open(nil)
	if got := r.await(1); got[0].Body != string(n.Body) {
		t.Errorf("got %s, want %s", got[0].Body, n.Body)
	}
}

// Whoever ends a run, the notice is owed as its start says: runs that started long ago, and runs of a process without webhooks. A run
// that no server started owes nothing.
func TestWebhookOfLongRun(t *testing.T) {
	r := newReceiver(t)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	info, err := h.journal.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	info.Outcome = journal.Outcome{}
	none := info
	none.ID, none.Notify = "none", nil
	h.put(none)
	info.ID, info.Started = "b", time.Now().Add(-5*time.Hour)
	h.put(info)
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
	for start := time.Now(); len(h.owed()) > 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("the journal owes %+v", h.owed())
		}
	}
	h.want("GET", "/metrics", "", 200, `stone_webhooks_total{result="dropped"} 1`)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries != 1 {
		t.Errorf("%d tries", r.tries)
	}
}

// A receiver that is down costs a few attempts, whatever the number of notices. When it is up again, all notices arrive, also from
// a server that ended meanwhile.
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
	r.mu.Lock()
	tries := r.tries
	r.mu.Unlock()
	if tries > runs/2 { // 3, and one after each of the growing pauses
		t.Errorf("%d attempts at a receiver that is down", tries)
	}
	r.set(200)
	about := map[string]int{}
	for _, d := range r.await(2 * runs) {
		about[d.notice.Run.ID]++
	}
	if len(about) != 2*runs {
		t.Errorf("notices of %d runs came, want %d: %v", len(about), 2*runs, about)
	}
	for all, end := h.owed(), time.Now().Add(30*time.Second); len(all) > 0; all = h.owed() { // the server settles what it has sent
		if time.Now().After(end) {
			t.Fatalf("the journal owes %d notices", len(all))
		}
		time.Sleep(time.Millisecond)
	}
}

// Of several servers one makes each attempt, one at a time.
func TestWebhookOfServers(t *testing.T) {
	var now, most, tries atomic.Int32
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		tries.Add(1)
		w.WriteHeader(http.StatusBadRequest) // read and not wanted: the receiver is not down
	}))
	defer slow.Close()
	hook := (&receiver{Server: slow}).hook()
	h := newHouse(t, nil, hook)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	var servers []*serve.Server
	for range 3 {
		s, err := serve.New(serve.Config{Journal: h.journal, Webhooks: h.hooks, Scan: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
	}
	for tries.Load() < 10 {
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(func() {
				if err := s.Send(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if most.Load() != 1 {
		t.Errorf("%d attempts at one notice at the same time", most.Load())
	}
}

// A clock that is set back holds no notice up.
func TestWebhookOfFuture(t *testing.T) {
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.Stop()
	n := h.owed()[0]
	n.Next = time.Now().Add(24 * time.Hour)
	if mine, err := h.journal.PutNotice(t.Context(), n, n.Tries); err != nil || !mine {
		t.Fatal(mine, err)
	}
	r.set(200)
	h.open(nil)
	r.await(1)
}

// damagedQuestions is a journal that has damaged questions of a run.
type damagedQuestions struct{ *sqlite.DB }

func (j damagedQuestions) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	if q.Run == "damaged" {
		return func(yield func(journal.Question, error) bool) {
			yield(journal.Question{}, &journal.DamageError{Run: q.Run})
		}
	}
	return j.DB.EachQuestion(ctx, q)
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
	if err := s.Send(t.Context()); err != nil {
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
}

func TestWebhookRefused(t *testing.T) {
	for want, w := range map[string]serve.Webhook{
		"want a name":         {URL: "https://example.com", Secrets: []string{newSecret}},
		"want one secret":     {Name: "a", URL: "https://example.com"},
		"want an https URL":   {Name: "a", URL: "http://example.com", Secrets: []string{newSecret}},
		"does not begin with": {Name: "a", URL: "https://example.com", Secrets: []string{"s3cret"}},
	} {
		_, err := serve.New(serve.Config{Journal: memdb.New(t), Webhooks: []serve.Webhook{w}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A run that is removed takes what it owes along.
func TestWebhookOfRemovedRun(t *testing.T) {
	r := newReceiver(t)
	r.set(503)
	h := newHouse(t, nil, r.hook())
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	r.await(1)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, "")
	h.want("DELETE", "/v1/runs/a", "", 204, "")
	if all := h.owed(); len(all) > 0 {
		t.Errorf("the journal owes %+v", all)
	}
}
