package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

func TestMetrics(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"state":"done"`)
	h.want("PUT", "/v1/runs/b", `{"pipeline":"draft","input":{"text":"bad"}}`, 201, "")
	h.want("GET", "/v1/runs/b/result?wait=30s", "", 200, `"state":"failed"`)
	h.want("PUT", "/v1/runs/c", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/c/result?wait=30s", "", 202, `"state":"waiting"`)
	h.want("PUT", "/v1/runs/d", `{"pipeline":"slow","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/none", "", 404, "")
	h.want("GET", "/v1/there-is-no-such-path", "", 404, "")
	text := h.want("GET", "/metrics", "", 200, "# TYPE stone_runs_active gauge")
	for _, line := range []string{
		`stone_runs_stopped_total{pipeline="draft",state="done"} 1`, `stone_runs_stopped_total{pipeline="draft",state="failed"} 1`,
		`stone_runs_stopped_total{pipeline="page",state="waiting"} 1`, `stone_runs_unfinished{pipeline="page",state="waiting"} 1`,
		`stone_questions_open{pipeline="page"} 1`, `stone_runs_active{pipeline="slow"} 1`,
		`stone_steps_total{pipeline="draft",result="ok"} 1`, `stone_steps_total{pipeline="draft",result="failed"} 1`,
		`stone_http_requests_total{route="PUT /v1/runs/{id}",status="201"} 4`, `stone_http_requests_total{route="GET /v1/runs/{id}",status="404"} 1`,
		`stone_http_requests_total{route="other",status="404"} 1`,
		`stone_http_request_duration_seconds_count{route="PUT /v1/runs/{id}"} 4`, `stone_journal_seconds_count{operation="begin"} 4`,
		`stone_event_streams 0`, `stone_usd_total{pipeline="draft"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	for _, word := range []string{"marble", "there-is-no-such-path"} {
		if strings.Contains(text, word) {
			t.Errorf("the metrics have %q", word)
		}
	}
	close(h.Gate)
}

// Metrics are about all tenants: one tenant does not get them, nor does a caller without
// the role.
func TestMetricsRole(t *testing.T) {
	h := newHouse(t, tenants{})
	if status, text := h.do("GET", "/metrics", "", "X-Tenant", "acme"); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
	if status, text := h.do("GET", "/metrics", "", "X-Tenant", "reader"); status != http.StatusForbidden {
		t.Errorf("%d %s", status, text)
	}
	if status, text := h.do("GET", "/metrics", "", "X-Tenant", ""); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, text)
	}
	s := newHouse(t, scraper{})
	s.want("GET", "/metrics", "", 200, "stone_event_streams 0")
	s.want("GET", "/v1/runs", "", 403, "read")
}

// scraper is a caller that may read metrics alone.
type scraper struct{}

func (scraper) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Roles: []serve.Role{serve.Scrape}}, nil
}

// What a canceled attempt may have cost is in the answer and in a metric of its own, once.
func TestPossibleCost(t *testing.T) {
	asked := make(chan struct{}, 1)
	ask := stone.Func0("ask", dag.NewType[string]("answer"), func(ctx context.Context) (string, error) {
		type paid struct {
			Usage budget.Usage `json:"usage"`
		}
		pay := func(name string, work func(context.Context) error) error {
			_, err := stone.Step(declared.With(ctx, budget.Amount{Roundtrips: 1, Tokens: 90, USD: 0.25}), name, nil, func(ctx context.Context, _ any) (paid, error) {
				return paid{budget.Usage{InputTokens: 8, USD: 0.125}}, work(ctx)
			})
			return err
		}
		if err := pay("first", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return "", pay("second", func(ctx context.Context) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
	})
	s := serveAll(t, serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Ashlar: ask}}})
	defer s.Stop()
	c := api.Client{URL: s.URL}
	want := budget.Total{Usage: budget.Usage{InputTokens: 8, USD: 0.125}}
	for range 2 {
		run, err := c.Start(t.Context(), "a", api.Start{Pipeline: "ask"})
		if err == nil && run.State == journal.Canceled {
			run, err = c.Resume(t.Context(), "a", api.Resume{})
		}
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		if run, err = c.Cancel(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		want.Possible = want.Possible.Add(budget.Possible{Attempts: 1, Tokens: 90, USD: 0.25})
		if run.Usage != want {
			t.Errorf("got %+v, want %+v", run.Usage, want)
		}
	}
	resp, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "stone_usd_total{pipeline=\"ask\"} 0.125\n") || !strings.Contains(string(text), "stone_usd_possible_total{pipeline=\"ask\"} 0.5\n") {
		t.Errorf("%v in %s", err, text)
	}
}

// counting counts the questions that are read run by run.
type counting struct {
	journal.Journal
	asked atomic.Int64
}

func (c *counting) Questions(ctx context.Context, run string) ([]journal.Question, error) {
	c.asked.Add(1)
	return c.Journal.Questions(ctx, run)
}

func (c *counting) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	c.asked.Add(1)
	return c.Journal.EachQuestion(ctx, q)
}

// However many runs wait, the metrics read no run's questions.
func TestMetricsOfManyWaitingRuns(t *testing.T) {
	j := &counting{Journal: memdb.New(t)}
	for i := range 50 {
		id := fmt.Sprint("r", i)
		_, err := j.Acquire(t.Context(), id)
		if i%2 == 0 {
			_, failed := j.Ask(t.Context(), journal.Question{Run: id, Path: "p", Name: "p", Asked: time.Now()})
			err = errors.Join(err, failed)
		}
		err = errors.Join(err, j.Begin(t.Context(), journal.RunInfo{ID: id, Pipeline: "page"}, dag.DAG{}), j.End(t.Context(), id, journal.Outcome{State: journal.Waiting}), j.Release(id))
		if err != nil {
			t.Fatal(err)
		}
	}
	s := serveAll(t, serve.Config{Journal: j, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "page", Ashlar: servetest.NewSteps().Publish()}}})
	before := j.asked.Load()
	resp, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if n := j.asked.Load() - before; err != nil || n > 0 || !strings.Contains(string(text), `stone_questions_open{pipeline="page"} 25`+"\n") {
		t.Errorf("the metrics read the questions of %d runs, %v:\n%s", n, err, text)
	}
}
