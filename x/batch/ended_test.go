package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/x/batch"
)

// A dying process ends before it notes what became of its batches.
type dying struct{ *sqlite.DB }

func (d dying) PutBatch(ctx context.Context, run string, b owed.Batch) error {
	if b.Number == 5 && b.State == owed.Ended {
		return errDied
	}
	return d.DB.PutBatch(ctx, run, b)
}

var errDied = errors.New("the process has died")

// A step that is done again is asked anew, also if the process that recorded its first answer has not noted that.
func TestAgainInBatches(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) { testAgainInBatches(t, dies) })
	}
}

func testAgainInBatches(t *testing.T, dies bool) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	b.Answer = fiveTurns
	run, cfg := config(j, "r")
	p := asking(3, models(b.URL)["chat"], look)
	if dies {
		cfg.Journal = dying{j}
	}
	if _, err := batch.Run(t.Context(), p, run, cfg); err != nil && !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	cfg.Journal = j
	steps, err := j.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var again []string
	for _, s := range steps {
		if s.Kind == "leaf" && s.Name == "ask" && len(again) == 0 {
			again = append(again, s.Path)
		}
	}
	run.Recorder = journal.Keep(j, journal.Options{Resume: true, Force: true, Again: again})
	if _, err := batch.Run(t.Context(), p, run, cfg); err != nil {
		t.Fatal(err)
	}
	if len(b.Batches) != 10 {
		t.Errorf("%v was to be done again: %d batches were made in all, want 10", again, len(b.Batches))
	}
	if info, err := j.Find(t.Context(), "r"); err != nil || info.State != journal.Done {
		t.Errorf("the run is %s, %v", info.State, err)
	}
}

// A run one of whose batches has ended can be canceled, and twice.
func TestCancelEndedBatch(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	b.Met = func(w http.ResponseWriter, r *http.Request, _ int, after bool) bool {
		if !after || !strings.HasSuffix(r.URL.Path, "batch_1_/cancel") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"error":{"message":"Cannot cancel a batch with status 'completed'.","type":"invalid_request_error","param":null,"code":null}}`))
		return true
	}
	run, cfg := config(j, "r")
	cfg.NoWait, cfg.Most = true, 3 // two batches, the first of which has ended
	p := asking(5, models(b.URL)["chat"])
	if _, err := batch.Run(t.Context(), p, run, cfg); !errors.Is(err, kind.Waiting) || len(b.Batches) != 2 {
		t.Fatal(err, len(b.Batches))
	}
	for range 2 {
		if err := batch.Cancel(t.Context(), p, run, journal.Options{}, cfg); err != nil {
			t.Errorf("the run cannot be canceled: %v", err)
		}
	}
}

// What a provider refuses as a whole, which may pass, is sent again.
func TestFailedBatch(t *testing.T) {
	for protocol, failed := range map[string]string{
		"chat":   `{"id":"batch_1_","status":"failed","errors":{"data":[{"code":"token_limit_exceeded","message":"Enqueued token limit reached for m in organization o. Limit: 90,000 enqueued tokens. Please try again once some in_progress batches have been completed."}]}}`,
		"gemini": `{"name":"batches/batch_1_","done":true,"metadata":{"state":"BATCH_STATE_FAILED"},"error":{"message":"an internal error"}}`,
	} {
		t.Run(protocol, func(t *testing.T) {
			b, j := batchtest.New(t, 0), memdb.New(t)
			// The first batch fails, later ones are answered.
			b.Met = func(w http.ResponseWriter, r *http.Request, _ int, after bool) bool {
				if after || r.Method != http.MethodGet || !strings.HasSuffix(strings.TrimRight(r.URL.Path, "/"), "batch_1_") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(failed))
				return true
			}
			p := asking(3, models(b.URL)[protocol])
			run, cfg := config(j, "r")
			var err error
			for range 5 { // five times "stone resume"
				if _, err = batch.Run(t.Context(), p, run, cfg); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("after five resumes: %v (waiting %t); %d batches were made, want 2", err, errors.Is(err, kind.Waiting), len(b.Batches))
			}
		})
	}
}

// With two batches, the first one failed and the second one answered: the answers that are there are not used either.
func TestFailedBatchBlocksOthers(t *testing.T) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	b.Met = func(w http.ResponseWriter, r *http.Request, _ int, after bool) bool {
		if after || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "batch_1_") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"batch_1_","status":"failed","errors":{"data":[{"message":"Enqueued token limit reached"}]}}`))
		return true
	}
	run, cfg := config(j, "r")
	cfg.Most = 2 // two batches for three requests
	for range 3 {
		_, _ = batch.Run(t.Context(), asking(3, models(b.URL)["chat"]), run, cfg)
	}
	steps, err := j.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for _, s := range steps {
		if s.Recorded && strings.HasSuffix(s.Path, "/turn-1") {
			answered++
		}
	}
	if answered == 0 {
		t.Errorf("the second batch is answered and paid, and no answer of it is recorded after three resumes")
	}
}

// A run that failed by an answer in its batch asks anew when it is resumed.
func TestRetryFailedInBatches(t *testing.T) {
	for _, protocol := range []string{"messages", "gemini"} { // the fake OpenAI has no file without answers
		t.Run(protocol, func(t *testing.T) {
			b, j := batchtest.New(t, 0), memdb.New(t)
			b.Fate = func(_ string, round int) string {
				if round == 0 {
					return "errored"
				}
				return ""
			}
			run, cfg := config(j, "r")
			p := asking(1, models(b.URL)[protocol])
			if _, err := batch.Run(t.Context(), p, run, cfg); err == nil {
				t.Fatal("it did not fail")
			}
			if info, err := j.Find(t.Context(), "r"); err != nil || info.State != journal.Failed {
				t.Fatal(info.State, err)
			}
			// Meanwhile the cause is gone.
			result, err := batch.Run(t.Context(), p, run, cfg)
			if err != nil {
				t.Fatalf("resumed: %v; %d batches were made in all, want 2", err, len(b.Batches))
			}
			check(t, result, err, 1)
		})
	}
}

// A request that batches do not answer is sent three times, and not again once somebody has canceled its batch.
func TestNoAnswer(t *testing.T) {
	for _, status := range []string{"cancelled", "completed", "expired"} {
		for _, noWait := range []bool{false, true} {
			var made atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				switch p := r.URL.Path; {
				case p == "/v1/files":
					_, _ = io.WriteString(w, `{"id":"file-1"}`)
				case r.Method == http.MethodPost:
					fmt.Fprintf(w, `{"id":"batch_%d","status":"validating"}`, made.Add(1))
				case strings.HasPrefix(p, "/v1/batches/"):
					fmt.Fprintf(w, `{"id":%q,"status":%q,"output_file_id":null,"error_file_id":null,"request_counts":{"total":1,"completed":0,"failed":0}}`, strings.TrimPrefix(p, "/v1/batches/"), status)
				}
			}))
			m := openai.New(openai.Config{Model: "m", URL: server.URL + "/v1", Key: llm.NoKey, Protocol: openai.ChatCompletions})
			p := agent.New("ask", dag.NewType[agent.Text]("said"), m, agent.Config{User: agent.Say("x")})
			mem := memdb.New(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := batch.Run(ctx, p, stone.Config{RunID: "r", Recorder: journal.Keep(mem, journal.Options{})}, batch.Config{Journal: mem, NoWait: noWait})
			cancel()
			server.Close()
			if n, most := made.Load(), int32(3); err == nil || status == "cancelled" && n > 1 || n > most || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, NoWait %v: the one request was sent in %d batches within 3 s; %v", status, noWait, n, err)
			}
		}
	}
}

// A batch that was refused as a whole, or that the provider no longer has, does not hold up its run.
func TestBatchGone(t *testing.T) {
	const said = `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
	for _, mood := range []string{"token limit", "batch gone", "file gone", "server_error line"} {
		var mu sync.Mutex
		var keys []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			p, last := r.URL.Path, len(keys)
			switch {
			case p == "/v1/files":
				_, key, _ := strings.Cut(string(body), `"custom_id":"`)
				key, _, _ = strings.Cut(key, `"`)
				keys = append(keys, key)
				fmt.Fprintf(w, `{"id":"file-%d"}`, last+1)
			case r.Method == http.MethodPost:
				fmt.Fprintf(w, `{"id":"batch_%d","status":"validating"}`, last)
			case strings.HasPrefix(p, "/v1/batches/batch_1") && mood == "token limit":
				_, _ = io.WriteString(w, `{"id":"batch_1","status":"failed","errors":{"data":[{"code":"token_limit_exceeded","message":"Enqueued token limit reached"}]}}`)
			case strings.HasPrefix(p, "/v1/batches/batch_1") && mood == "batch gone", strings.HasPrefix(p, "/v1/files/out1/") && mood == "file gone":
				w.WriteHeader(404)
				_, _ = io.WriteString(w, `{"error":{"message":"not found"}}`)
			case strings.HasPrefix(p, "/v1/batches/"):
				fmt.Fprintf(w, `{"id":"b","status":"completed","output_file_id":"out%s"}`, strings.TrimPrefix(p, "/v1/batches/batch_"))
			case mood == "server_error line" && p == "/v1/files/out1/content":
				fmt.Fprintf(w, `{"custom_id":%q,"response":null,"error":{"code":"server_error","message":"try again"}}`+"\n", keys[last-1])
			default:
				fmt.Fprintf(w, `{"custom_id":%q,"response":{"status_code":200,"body":%s}}`+"\n", keys[last-1], said)
			}
		}))
		m := openai.New(openai.Config{Model: "m", URL: server.URL + "/v1", Key: llm.NoKey, Protocol: openai.ChatCompletions})
		p := agent.New("ask", dag.NewType[agent.Text]("said"), m, agent.Config{User: agent.Say("x")})
		mem := memdb.New(t)
		var err error
		for range 3 { // as a user who resumes the run
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err = batch.Run(ctx, p, stone.Config{RunID: "r", Recorder: journal.Keep(mem, journal.Options{})}, batch.Config{Journal: mem, Every: 5 * time.Millisecond})
			cancel()
		}
		server.Close()
		if err != nil {
			t.Errorf("%s: after three visits and %d batches: %v", mood, len(keys), err)
		}
	}
}

// A request that waits has made no round trip, however often its run is visited.
func TestRoundtrips(t *testing.T) {
	b, j := batchtest.New(t, 3), memdb.New(t)
	run, cfg := config(j, "r")
	cfg.NoWait = true
	ctx := budget.With(priced(t.Context()), budget.New(budget.Limits{Roundtrips: new(10)}))
	p := asking(10, models(b.URL)["messages"])
	for {
		result, err := batch.Run(ctx, p, run, cfg)
		if errors.Is(err, kind.Waiting) {
			continue
		}
		check(t, result, err, 10)
		break
	}
	if n := budget.From(ctx).Spent().Roundtrips; n != 10 {
		t.Errorf("%d round trips, want 10", n)
	}
}

// A cancellation that the provider does not take leaves the run as it was, and works once it does: also after somebody has answered the
// question of the run.
func TestCancelAgain(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	busy := true
	b.Met = func(w http.ResponseWriter, r *http.Request, _ int, after bool) bool {
		if !busy || after || !strings.HasSuffix(r.URL.Path, "/cancel") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	run, cfg := config(j, "r")
	cfg.NoWait = true
	p := asking(3, models(b.URL)["chat"])
	if _, err := batch.Run(t.Context(), p, run, cfg); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	if err := batch.Cancel(t.Context(), p, run, journal.Options{}, cfg); err == nil {
		t.Fatal("the provider refused it")
	}
	if info, err := j.Find(t.Context(), "r"); err != nil || info.State != journal.Waiting {
		t.Errorf("the run is %s, %v: want that it waits", info.State, err)
	}
	if err := journal.Answer(t.Context(), j, "r", "batch/1", ask.Answer{Response: "look again"}); err != nil {
		t.Fatal(err)
	}
	busy = false
	if err := batch.Cancel(t.Context(), p, run, journal.Options{}, cfg); err != nil || !b.Batches[0].Canceled {
		t.Errorf("canceled %t, %v", b.Batches[0].Canceled, err)
	}
}

// A run that another process cancels while this one waits for its batches does not continue.
func TestCanceledElsewhere(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	run, cfg := config(j, "r")
	p := asking(3, models(b.URL)["chat"])
	other := cfg
	var once sync.Once
	cfg.Watch = func([]batch.Status) {
		once.Do(func() {
			if err := errors.Join(batch.Cancel(t.Context(), p, run, journal.Options{}, other), journal.Cancel(t.Context(), j, "r")); err != nil {
				t.Error(err)
			}
		})
	}
	_, err := batch.Run(t.Context(), p, run, cfg)
	if info, found := j.Find(t.Context(), "r"); !errors.Is(err, kind.Canceled) || info.State != journal.Canceled || found != nil || len(b.Batches) != 1 {
		t.Errorf("%v; the run is %s, %v; %d batches", err, info.State, found, len(b.Batches))
	}
	// Whoever resumes it asks anew for what was not answered.
	b.Looks = 0
	cfg.Watch = nil
	result, err := batch.Run(t.Context(), p, run, cfg)
	check(t, result, err, 3)
	if len(b.Batches) != 2 {
		t.Errorf("%d batches, want 2", len(b.Batches))
	}
}

// Equal requests that a body makes one after the other, as for a second sample, are two requests.
func TestEqualRequests(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b, j := batchtest.New(t, 0), memdb.New(t)
	var n atomic.Int64
	b.Answer = func(protocol, _ string) string { return batchtest.Said(protocol, fmt.Sprint("sample ", n.Add(1))) }
	m := models(b.URL)["chat"]
	p := stone.Func0("samples", report, func(ctx context.Context) (texts []string, err error) {
		for range 2 {
			said, err := llm.Collect(ctx, m, &llm.Request{Messages: []llm.Message{llm.User("question 1")}})
			if err != nil {
				return nil, err
			}
			texts = append(texts, said.Text)
		}
		return texts, nil
	})
	run, cfg := config(j, "r")
	result, err := batch.Run(ctx, p, run, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if texts, err := report.Of(result.Node); err != nil || len(texts) != 2 || texts[0] == texts[1] || len(b.Batches) != 2 {
		t.Errorf("got %q, %v in %d batches; want two samples in two", texts, err, len(b.Batches))
	}
}
