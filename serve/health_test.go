package serve_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

// troubled is a journal whose store is sometimes in trouble.
type troubled struct {
	*sqlite.DB
	reads, writes, hangs atomic.Bool
	full                 atomic.Bool // small writes fit
}

var errTrouble = fmt.Errorf("database x does not answer: %w", journal.ErrUnavailable)

func (j *troubled) read(ctx context.Context) error {
	if j.hangs.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if j.reads.Load() {
		return errTrouble
	}
	return nil
}

func (j *troubled) Find(ctx context.Context, id string) (journal.RunInfo, error) {
	if err := j.read(ctx); err != nil {
		return journal.RunInfo{}, err
	}
	return j.DB.Find(ctx, id)
}

func (j *troubled) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	if err := j.read(ctx); err != nil {
		return nil, err
	}
	return j.DB.Runs(ctx, q)
}

func (j *troubled) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	if err := j.read(ctx); err != nil {
		return func(yield func(journal.Question, error) bool) { yield(journal.Question{}, err) }
	}
	return j.DB.EachQuestion(ctx, q)
}

func (j *troubled) Begin(ctx context.Context, info journal.RunInfo, input dag.DAG) error {
	if j.writes.Load() || j.full.Load() && len(input.Latest().Content()) > 1<<20 {
		return errTrouble
	}
	return j.DB.Begin(ctx, info, input)
}

// What a retry can heal is told as such by every protocol, and written to the log once.
func TestStoreInTrouble(t *testing.T) {
	j := &troubled{DB: memdb.New(t)}
	h := &house{T: t, Steps: servetest.NewSteps(), journal: j.DB}
	h.Server = serveAll(t, serve.Config{
		Journal: j, Log: slog.New(h), Scan: time.Hour, Applicator: &call.Applicator{Registry: greeters()},
		Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}}, Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
	})
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, "")
	send := func(method, path, body string, header ...string) (int, string, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), string(text)
	}
	start, chat := `{"pipeline":"draft","input":{"text":"y"}}`, `{"model":"stone/draft","messages":[{"role":"user","content":"{\"text\":\"y\"}"}]}`
	before := h.lines.Load()
	for _, trouble := range []struct {
		flag     *atomic.Bool
		requests [][]string
	}{
		{&j.reads, [][]string{
			{"GET", "/v1/runs", ""}, {"GET", "/v1/runs/a", ""}, {"GET", "/v1/runs/a/events", ""}, {"GET", "/v1/questions", ""}, {"POST", "/v1/runs/a/cancel", ""},
			{"DELETE", "/v1/runs/a", ""}, {"GET", "/v1/responses/resp_1", ""}, {"GET", "/runs/a", "", "Accept", "text/html"}, {"GET", "/readyz", ""},
			{"POST", "/v1/runs/a/answers", `{"question":"q","response":"yes"}`}, {"POST", "/v1/act?id=b", ada},
		}},
		{&j.writes, [][]string{
			{"PUT", "/v1/runs/b", start}, {"POST", "/v1/runs", start}, {"POST", "/v1/chat/completions", chat}, {"POST", "/v1/responses", `{"model":"stone/draft","input":"{\"text\":\"y\"}"}`},
			{"POST", "/v1/act?id=c", ada}, {"GET", "/readyz", ""},
		}},
	} {
		trouble.flag.Store(true)
		status, _, text := send("GET", "/metrics", "") // counters are needed most now
		if known := strings.Contains(text, "stone_runs_unfinished"); status != 200 || !strings.Contains(text, "stone_http_requests_total") || known && trouble.flag == &j.reads {
			t.Errorf("metrics: %d %s", status, text)
		}
		for _, r := range trouble.requests {
			status, retry, text := send(r[0], r[1], r[2], r[3:]...)
			if says := strings.Contains(text, `"unavailable"`) || strings.Contains(text, "the database does not answer") || strings.Contains(text, "invoke-failed"); status != 503 || retry != "5" || !says && !strings.HasPrefix(r[1], "/v1/act") {
				t.Errorf("%s %s: %d, Retry-After %q, %s", r[0], r[1], status, retry, text)
			}
		}
		request := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draft","arguments":{"text":"z"}}}`
		if _, _, text := send("POST", "/mcp", request, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25"); !strings.Contains(text, "the database does not answer") {
			t.Errorf("the tool says %s", text)
		}
		trouble.flag.Store(false)
		h.want("PUT", "/v1/runs/ok", `{"pipeline":"draft","input":{"text":"x"}}`, map[bool]int{true: 201, false: 200}[trouble.flag == &j.reads], "")
	}
	h.want("PUT", "/v1/runs/ok-2", `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/ok-2/result?wait=30s", "", 200, "")
	h.want("GET", "/readyz", "", 204, "")
	// A line for each kind of trouble, one for its end, and one for each run that did not start.
	if n := h.lines.Load() - before; n > 12 {
		t.Errorf("the log has %d lines", n)
	}
}

// On a full disk a small write may succeed: the server is ready again once one succeeds like the one that failed.
func TestReadyAfterALikeWrite(t *testing.T) {
	j := &troubled{DB: memdb.New(t)}
	h := &house{T: t, Steps: servetest.NewSteps(), journal: j.DB}
	h.Server = serveAll(t, serve.Config{Journal: j, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}}})
	small, large := `{"pipeline":"draft","input":{"text":"x"}}`, `{"pipeline":"draft","input":{"text":"`+strings.Repeat("x", 2<<20)+`"}}`
	j.full.Store(true)
	h.want("GET", "/readyz", "", 204, "")
	h.want("PUT", "/v1/runs/a", large, 503, "")
	h.want("GET", "/readyz", "", 503, "")
	h.want("PUT", "/v1/runs/b", small, 201, "")
	h.want("GET", "/v1/runs/b/result?wait=30s", "", 200, "")
	h.want("GET", "/readyz", "", 503, "")
	j.full.Store(false)
	h.want("PUT", "/v1/runs/c", large, 201, "")
	h.want("GET", "/v1/runs/c/result?wait=30s", "", 200, "")
	h.want("GET", "/readyz", "", 204, "")
}

// Readiness is answered at once: by what is known, and not by a store that says nothing.
func TestReadyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &troubled{DB: memdb.New(t)}
		s, err := serve.New(serve.Config{Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		ready := func(want int, within time.Duration) {
			t.Helper()
			w, start := &window{header: http.Header{}}, time.Now()
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.ServeHTTP(w, req); w.status != want && want != 0 || time.Since(start) > within {
				t.Errorf("status %d after %v, want %d", w.status, time.Since(start), want)
			}
			synctest.Wait()
		}
		j.hangs.Store(true)
		ready(503, 2*time.Second) // nothing is known yet
		ready(503, 2*time.Second)
		j.hangs.Store(false)
		time.Sleep(time.Minute) // the read ends
		ready(0, 0)             // it asks again, and may hear of it in time
		ready(204, 0)
		j.hangs.Store(true)
		ready(204, 0)
		time.Sleep(3 * time.Second)
		ready(503, 0)
		j.hangs.Store(false)
		time.Sleep(time.Minute)
		ready(0, 0)
		ready(204, 0)
	})
}
