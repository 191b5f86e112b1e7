package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/batch"
)

// A night publishes "asking", whose three lanes ask a model. It may be opened again over its journal.
type night struct {
	testing.TB
	*batchtest.Server
	journal   journal.Journal // in memory, if nil
	url       string
	scan      time.Duration
	published atomic.Bool
	without   bool // the part
}

func (d *night) open() *servetest.Server {
	if d.journal == nil {
		d.journal = memdb.New(d)
	}
	lane, said, all := dag.NewType[int]("lane"), dag.NewType[agent.Text]("said"), dag.NewType[[]string]("all")
	list := dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{0, 1, 2}, nil })
	ask := agent.New("ask", said, openai.New(openai.Config{URL: d.URL, Key: "key", Model: "m"}),
		agent.Config{User: agent.Prompt(lane, func(i int) string { return fmt.Sprintf("question %d", i) }), MaxTokens: 500})
	asking := stone.Seq("asking", stone.Map("each", list, lane, ask), stone.Reduce(stone.Func("collect", dag.All(said), all,
		func(_ context.Context, got []agent.Text) (texts []string, err error) {
			for _, one := range got {
				texts = append(texts, one.Text)
			}
			return texts, nil
		})))
	base := llm.WithTable(context.Background(), func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1, Out: 10}} })
	cfg := serve.Config{Journal: d.journal, Scan: d.scan, Pipelines: []serve.Pipeline{{Name: "asking", Ashlar: asking}, {Name: "releasing", Ashlar: d.releasing()}}, Base: func() context.Context { return base }}
	if !d.without {
		cfg.Batches = batch.Part
	}
	s := serveAll(d, cfg)
	d.url = s.URL
	return s
}

// do sends a request and reads the run of its reply.
func (d *night) do(method, path, body string) (r api.Run) {
	d.Helper()
	req, err := http.NewRequestWithContext(d.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 || len(text) > 0 && json.Unmarshal(text, &r) != nil {
		d.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
	}
	return r
}

// until returns the questions of the run once it is as wanted.
func (d *night) until(id string, is func(journal.RunInfo, []journal.Question) bool) []journal.Question {
	d.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		info, _ := d.journal.Find(d.Context(), id)
		asked, err := d.journal.Questions(d.Context(), id)
		if err == nil && is(info, asked) {
			return asked
		}
		if time.Now().After(deadline) {
			d.Fatalf("run %s is %s with %d questions, %v", id, info.State, len(asked), err)
		}
	}
}

func state(want journal.State) func(journal.RunInfo, []journal.Question) bool {
	return func(i journal.RunInfo, _ []journal.Question) bool { return i.State == want }
}

// asks reports whether a run waits with a text.
func asks(text string) func(journal.RunInfo, []journal.Question) bool {
	return func(i journal.RunInfo, all []journal.Question) bool {
		return i.State == journal.Waiting && len(all) > 0 && all[len(all)-1].Name == "batch" && strings.Contains(all[len(all)-1].Text, text)
	}
}

const startAsking = `{"pipeline":"asking","batch":true}`

// A server looks at the batches of a run, also one that another process has started, and tells no webhook.
func TestBatches(t *testing.T) {
	d := &night{TB: t, Server: batchtest.New(t, 1<<30)}
	first := d.open()
	if r := d.do("PUT", "/v1/runs/r", startAsking); r.Labels["batch"] != "true" {
		t.Errorf("labels %v", r.Labels)
	}
	d.until("r", asks(" of 3 done"))
	d.do("PUT", "/v1/runs/r", startAsking) // the same request once more
	first.Stop()
	d.Lock()
	d.Looks = 2
	d.Unlock()
	d.open()
	for _, q := range d.until("r", state(journal.Done)) {
		if q.Open() {
			t.Errorf("still asked: %+v", q)
		}
	}
	if len(d.Batches) != 1 || d.Direct != 0 {
		t.Errorf("%d batches and %d direct requests", len(d.Batches), d.Direct)
	}
	var all []string
	if r := d.do("GET", "/v1/runs/r/result", ""); r.Usage.USD < 3*0.001*0.999 || r.Usage.USD > 3*0.001*1.001 {
		t.Errorf("the run cost %v USD, want half of %v", r.Usage.USD, 3*0.002)
	} else if err := json.Unmarshal(r.Result.Content, &all); err != nil || strings.Join(all, ",") != "answer 0,answer 1,answer 2" {
		t.Errorf("result %v, %v", all, err)
	}
	if r := d.do("PUT", "/v1/runs/direct", `{"pipeline":"asking"}`); d.do("GET", "/v1/runs/direct/result?wait=30s", "").State != journal.Done || d.Direct != 3 || r.Labels["batch"] != "" {
		t.Errorf("a run without batches: %d direct requests, labels %v", d.Direct, r.Labels)
	}
}

// A server without the part refuses runs in batches, and leaves other servers' batch runs alone.
func TestBatchesWithoutPart(t *testing.T) {
	d := &night{TB: t, Server: batchtest.New(t, 1<<30), scan: 10 * time.Millisecond}
	first := d.open()
	d.do("PUT", "/v1/runs/r", startAsking)
	d.until("r", asks(" of 3 done"))
	first.Stop()
	d.without = true
	d.open()
	for _, c := range [][3]string{{"PUT", "/v1/runs/n", startAsking}, {"POST", "/v1/runs/r/cancel", ""}} {
		req, err := http.NewRequestWithContext(t.Context(), c[0], d.url+c[1], strings.NewReader(c[2]))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(text), "this program sends no batches: give cli.Main the part of package github.com/stonelayer/stone/x/batch, or set serve.Config.Batches to it") {
			t.Errorf("%s %s: %d %s %v", c[0], c[1], resp.StatusCode, text, err)
		}
	}
	// The first server may have been stopped while it looked at the batch.
	if r := d.do("GET", "/v1/runs/r", ""); r.State != journal.Waiting && r.State != journal.Drained || d.Batches[0].Canceled {
		t.Errorf("the run is %s, canceled %t", r.State, d.Batches[0].Canceled)
	}
}

// A run that waits for a batch and is canceled cancels it, also right after its start.
func TestCancelBatches(t *testing.T) {
	for name, wait := range map[string]bool{"waiting": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			d := &night{TB: t, Server: batchtest.New(t, 1<<30), journal: db}
			d.open()
			d.do("PUT", "/v1/runs/r", startAsking)
			if wait {
				d.until("r", asks(" of 3 done"))
			}
			if r := d.do("POST", "/v1/runs/r/cancel", ""); r.State != journal.Canceled {
				t.Errorf("after the request the run is %s", r.State)
			}
			d.until("r", state(journal.Canceled))
			d.Lock()
			defer d.Unlock()
			if wait && len(d.Batches) != 1 || len(d.Batches) > 1 || len(d.Batches) == 1 && !d.Batches[0].Canceled {
				t.Errorf("batches %+v", d.Batches)
			}
		})
	}
}

// What a provider refuses is said, and tried again.
func TestBatchRefused(t *testing.T) {
	d, refuse := &night{TB: t, Server: batchtest.New(t, 1)}, true
	d.Met = func(w http.ResponseWriter, _ *http.Request, _ int, after bool) bool {
		if refuse && !after {
			http.Error(w, `{"error":{"message":"no credit"}}`, http.StatusPaymentRequired)
		}
		return refuse && !after
	}
	d.open()
	d.do("PUT", "/v1/runs/r", startAsking)
	d.until("r", asks("no credit"))
	d.Lock()
	refuse = false
	d.Unlock()
	d.until("r", state(journal.Done))
	if len(d.Batches) != 1 {
		t.Errorf("%d batches", len(d.Batches))
	}
}

// A run that is canceled while it waits for a batch starts nothing else, although a person has answered meanwhile.
func TestCancelStartsNothing(t *testing.T) {
	d := &night{TB: t, Server: batchtest.New(t, 1<<30), scan: time.Hour}
	d.open()
	d.do("PUT", "/v1/runs/r", `{"pipeline":"releasing","batch":true}`)
	d.until("r", asks(" of 1 done"))
	if err := d.journal.Answer(t.Context(), "r", "releasing/both[1]/release/approve", ask.Answer{Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	d.do("POST", "/v1/runs/r/cancel", "")
	d.until("r", state(journal.Canceled))
	d.Lock()
	defer d.Unlock()
	if d.published.Load() || len(d.Batches) != 1 || !d.Batches[0].Canceled {
		t.Errorf("published %t, %d batches, canceled %t", d.published.Load(), len(d.Batches), d.Batches[0].Canceled)
	}
}

// releasing asks a model, and beside it publishes what a person approves.
func (d *night) releasing() stone.Ashlar {
	said, approved, out := dag.NewType[agent.Text]("notes"), dag.NewType[stone.Answer]("approved"), dag.NewType[string]("published")
	notes := agent.New("notes", said, openai.New(openai.Config{URL: d.URL, Key: "key", Model: "m"}), agent.Config{User: agent.Say("question 1"), MaxTokens: 500})
	release := stone.Seq("release",
		stone.Ask("approve", dag.Nothing, approved, func(struct{}) string { return "Publish?" }, stone.Choices("yes", "no")),
		stone.Func("publish", approved, out, func(context.Context, stone.Answer) (string, error) { d.published.Store(true); return "out", nil }))
	return stone.Seq("releasing", stone.Parallel("both", notes, release, stone.AllLanes()),
		stone.Reduce(stone.Func0("end", dag.NewType[string]("end"), func(context.Context) (string, error) { return "end", nil })))
}
