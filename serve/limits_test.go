package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/step"
)

// payers is an Access whose callers may each spend a dollar a day.
type payers struct{}

func (payers) Principal(r *http.Request) (serve.Principal, error) {
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	return serve.Principal{Name: name, USDADay: new(1.0)}, nil
}

type greetingOf struct {
	Name string `json:"name"`
}

// A caller that has spent its daily limit starts nothing more, on this server or the next one.
// Another caller does, even if labels of the first one's runs name it.
func TestUSDADay(t *testing.T) {
	j := memdb.New(t)
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}, Cost: call.Cost{USD: 0.4}},
		func(_ context.Context, in greetingOf) (string, error) { return "Hello, " + in.Name, nil }))}
	name, greeting := dag.NewType[greetingOf]("name"), dag.NewType[string]("greeting")
	greet := call.New("greet", greeting, call.Spec{Applicator: app, Intent: "text/greet", Input: call.From(name)})
	twice := stone.Seq("twice", greet, call.New("again", greeting, call.Spec{Applicator: app, Intent: "text/greet", Input: call.From(name)}))
	open := func() (ada, bob api.Client, end func()) {
		s := serveAll(t, serve.Config{Journal: j, Access: payers{}, Applicator: app, Pipelines: []serve.Pipeline{{Ashlar: greet}, {Name: "twice", Ashlar: twice}}})
		return api.Client{URL: s.URL, Token: "ada"}, api.Client{URL: s.URL, Token: "bob"}, s.Stop
	}
	run := func(c api.Client, id, pipeline string) api.Run {
		t.Helper()
		run, err := c.Start(t.Context(), id, api.Start{Pipeline: pipeline, Input: []byte(`{"name":"x"}`), Labels: map[string]string{"caller": "bob"}})
		if err == nil {
			run, err = c.Result(t.Context(), run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	ada, bob, end := open()
	if r := run(bob, "z", "greet"); r.State != journal.Done {
		t.Errorf("%+v", r)
	}
	if r := run(ada, "a", "greet"); r.State != journal.Done || r.Usage.USD != 0.4 {
		t.Fatalf("%+v", r)
	}
	end()
	ada, bob, end = open() // which finds in the journal what was spent
	defer func() { end() }()
	if _, err := ada.Act(t.Context(), "", json.RawMessage(`{"proto":1,"trace":{"id":"r-1"},"task":{"intent":"text/greet"},"input":{"name":"Ada"}}`)); err != nil {
		t.Fatal(err)
	}
	// 0.2 are left: the next step is not paid.
	if r := run(ada, "b", "twice"); r.State != journal.Failed || r.Failure.Kind == "" {
		t.Errorf("%+v", r)
	}
	if r := run(bob, "c", "greet"); r.State != journal.Done {
		t.Errorf("another caller: %+v", r.Failure)
	}
	end()
	ada, bob, end = open()
	if r := run(ada, "d", "greet"); r.State != journal.Failed { // the answer that was kept counts, too
		t.Errorf("%+v", r)
	}
	if r := run(bob, "e", "greet"); r.State != journal.Failed { // of 0.8
		t.Errorf("%+v", r)
	}
}

// A caller with nothing left is refused before its run starts.
func TestUSDADayRefused(t *testing.T) {
	h := newHouse(t, broke{})
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"}}`, 429, "the next day begins at 00:00 UTC")
	h.want("GET", "/v1/runs/a", "", 404, "")
}

type broke struct{}

func (broke) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Name: "ci", USDADay: new(0.0)}, nil
}

// A daily limit that changes does not open a second purse: what was spent counts, and runs that
// are resumed do not bring the old limit back. Removing a run gives nothing back.
func TestUSDADayChanges(t *testing.T) {
	j := memdb.New(t)
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}, Cost: call.Cost{USD: 0.4}},
		func(_ context.Context, in greetingOf) (string, error) { return "Hello, " + in.Name, nil }))}
	name, greeting := dag.NewType[greetingOf]("name"), dag.NewType[string]("greeting")
	greet := call.New("greet", greeting, call.Spec{Applicator: app, Intent: "text/greet", Input: call.From(name)})
	limit := new(risen)
	limit.usd.Store(1)
	start := func() (api.Client, func()) {
		s := serveAll(t, serve.Config{Journal: j, Access: limit, Applicator: app, Pipelines: []serve.Pipeline{{Ashlar: greet}}})
		return api.Client{URL: s.URL, Token: "ada"}, s.Stop
	}
	c, end := start()
	want := func(id string, state journal.State) {
		t.Helper()
		run, err := c.Start(t.Context(), id, api.Start{Pipeline: "greet", Input: []byte(`{"name":"x"}`)})
		if err == nil {
			run, err = c.Result(t.Context(), run.ID)
		}
		refused := err != nil && strings.Contains(err.Error(), "has spent its daily limit") // before it starts
		if refused != (state == "") || !refused && (err != nil || run.State != state) {
			t.Errorf("run %s is %s, %v; want it %s", id, run.State, err, state)
		}
	}
	want("a", journal.Done)
	want("b", journal.Done)
	want("c", journal.Failed) // 0.2 are left
	if err := j.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want("d", journal.Failed)
	limit.usd.Store(2)
	want("e", journal.Done)
	want("f", journal.Done)
	want("g", journal.Done)
	want("h", "") // 2.0 are spent
	req, err := http.NewRequestWithContext(t.Context(), "PUT", c.URL+"/v1/runs/h", strings.NewReader(`{"pipeline":"greet","input":{"name":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	now := time.Now().UTC()
	tomorrow := time.Until(now.Truncate(24 * time.Hour).Add(24 * time.Hour)).Seconds()
	if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || resp.StatusCode != 429 || math.Abs(float64(wait)-tomorrow) > 60 {
		t.Errorf("%s with Retry-After %q: want the %.0f seconds until tomorrow", resp.Status, resp.Header.Get("Retry-After"), tomorrow)
	}
	end()
	c, end = start()
	defer end()
	want("i", "")
	limit.usd.Store(3)
	want("k", journal.Done)
}

// risen is an Access with a daily limit that changes.
type risen struct{ usd atomic.Int64 }

func (r *risen) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Name: "ada", USDADay: new(float64(r.usd.Load()))}, nil
}

// Several pipelines may draw on one budget. Budgets that are counted together with other limits are refused.
func TestBudgetsOfRules(t *testing.T) {
	team := budget.Shared{Name: "team", Per: budget.Day, Limits: budget.Limits{USD: new(5.0)}}
	other, month, week, unnamed := team, team, team, team
	other.Limits.USD, month.Per, week.Per, unnamed.Name = new(6.0), budget.Month, "week", ""
	open := func(of ...budget.Shared) (*serve.Server, error) {
		cfg := serve.Config{Journal: memdb.New(t)}
		for i, b := range of {
			cfg.Budgets = append(cfg.Budgets, budget.Rule{Shared: b, Pipeline: fmt.Sprint("p", i)})
		}
		return serve.New(cfg)
	}
	for want, of := range map[string][]budget.Shared{
		`budget "team" of this day is listed twice: list it once, with one limit`: {team, other},
		`budget "team" of this week: want "day", "month" or none as its period`:   {week},
		`a budget has no name: set one`:                                           {unnamed},
	} {
		if _, err := open(of...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, err := open(team, team, month)
	if err != nil {
		t.Fatal(err)
	}
	out := httptest.NewRecorder()
	s.ServeHTTP(out, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	for _, per := range []string{"day", "month"} {
		if line := fmt.Sprintf("stone_budget{budget=\"team\",per=%q,kind=\"limit\",unit=\"usd\"} 5\n", per); strings.Count(out.Body.String(), line) != 1 {
			t.Errorf("no line %s in\n%s", line, out.Body.String())
		}
	}
}

// A request for a capability takes turns as a run of its tenant or caller does.
func TestRankOfRequests(t *testing.T) {
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "ranked", Intents: []string{"text/greet"}},
		func(ctx context.Context, _ greetingOf) (string, error) { return limit.RankOf(ctx).Tenant, nil }))}
	s := serveAll(t, serve.Config{Journal: memdb.New(t), Access: payers{}, Applicator: app})
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/act", strings.NewReader(`{"proto":1,"trace":{"id":"a"},"task":{"intent":"text/greet"},"input":{"name":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer ada")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), `"out":"caller ada"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// GET /v1/budgets lists what runs draw on, with what is used and reserved. A tenant sees its own budgets alone, and
// everybody the own daily limit.
func TestBudgets(t *testing.T) {
	team := budget.Rule{Shared: budget.Shared{Name: "team", Per: budget.Month, Limits: budget.Limits{USD: new(5.0), Tokens: new(100)}}}
	acme := budget.Rule{Shared: budget.Shared{Name: "acme", Limits: budget.Limits{USD: new(2.0)}}, Pipeline: "greet", Labels: map[string]string{"tenant": "acme"}}
	other := budget.Rule{Shared: budget.Shared{Name: "other", Limits: budget.Limits{USD: new(1.0)}}, Labels: map[string]string{"tenant": "other"}}
	part := budget.Rule{Shared: team.Shared, Labels: acme.Labels} // on which runs of others draw, too
	j := memdb.New(t)
	who := serve.Principal{Name: "ada"}
	s, err := serve.New(serve.Config{Journal: j, Budgets: []budget.Rule{team, acme, other, part}, Access: asPrincipal{&who}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Acquire(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(t.Context(), journal.RunInfo{ID: "r", Started: time.Now(), Budgets: []budget.Shared{acme.Shared}}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	price := budget.Amount{USD: 0.5}
	ctx := declared.Claim(declared.With(t.Context(), price), budget.Fixed(price))
	lost := errors.New("lost")
	if _, err := j.Do(ctx, step.Key{RunID: "r", Path: "r/ask", Kind: "step", Name: "ask"}, func(context.Context) (step.Record, error) { return step.Record{}, lost }); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	const own = `{"name":"acme","limits":{"max-usd":2},"used":{},"held":{"usd":0.5},"pipeline":"greet","labels":{"tenant":"acme"}}`
	for _, c := range []struct {
		who        serve.Principal
		want, page []string
		not        string
	}{
		{serve.Principal{Name: "ada"}, []string{`{"name":"team","per":"month","limits":{"max-tokens":100,"max-usd":5},"used":{},"held":{},"renews":"`, own, `"other"`},
			[]string{"<td>team</td><td>all</td><td>tokens</td>", "<td>acme</td><td>greet tenant=acme</td><td>USD</td><td class=\"n\">0</td><td class=\"n\">0.5</td><td class=\"n\">2</td><td>never</td>"}, "payer"},
		{serve.Principal{Name: "bob", Tenant: "acme", USDADay: new(3.0)}, []string{own, `{"name":"bob","per":"day","payer":true,"limits":{"max-usd":3}`}, []string{"<td>acme</td>"}, "team"},
		{serve.Principal{USDADay: new(3.0)}, []string{own}, nil, "payer"}, // nobody's
		{serve.Principal{Name: "eve", Tenant: "third"}, []string{`{"budgets":[]}`}, nil, "acme"},
	} {
		who = c.who
		get := func(path string) string {
			out := httptest.NewRecorder()
			s.ServeHTTP(out, httptest.NewRequest("GET", "http://localhost"+path, nil))
			return out.Body.String()
		}
		list, page := get("/v1/budgets"), get("/overview")
		for _, want := range c.want {
			if !strings.Contains(list, want) {
				t.Errorf("%s gets %s, want %s", who.Name, list, want)
			}
		}
		for _, want := range c.page {
			if !strings.Contains(page, want) {
				t.Errorf("%s sees %s, want %s", who.Name, page, want)
			}
		}
		if strings.Contains(list, c.not) || c.not != "payer" && strings.Contains(page, ">"+c.not+"<") {
			t.Errorf("%s gets %s", who.Name, list)
		}
	}
}

// asPrincipal lets a principal in.
type asPrincipal struct{ who *serve.Principal }

func (a asPrincipal) Principal(*http.Request) (serve.Principal, error) { return *a.who, nil }

// A stopped run of a pipeline that the server does not publish is canceled by its records, unless it has batches at a
// provider.
func TestCancelUnpublished(t *testing.T) {
	j := memdb.New(t)
	s, err := serve.New(serve.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"plain", "batched", "held", "damaged"} {
		if _, err := j.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		info := journal.RunInfo{ID: id, Pipeline: "other", Started: time.Now()}
		if err := j.Begin(t.Context(), info, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		switch id {
		case "held":
			continue
		case "batched":
			if err := j.PutBatch(t.Context(), id, owed.Batch{Number: 1}); err != nil {
				t.Fatal(err)
			}
		}
		state := journal.Waiting
		if id == "damaged" {
			state = journal.Damaged
		}
		if err := j.End(t.Context(), id, journal.Outcome{State: state, Ended: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{
		"plain": `"state":"canceled"`, "batched": "this server does not publish the pipeline of the run", "held": "another process is running it",
		"damaged": "the run is already damaged",
	} {
		out := httptest.NewRecorder()
		s.ServeHTTP(out, httptest.NewRequest("POST", "http://localhost/v1/runs/"+id+"/cancel", nil))
		if !strings.Contains(out.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", id, out.Code, out.Body.String(), want)
		}
	}
	out := httptest.NewRecorder()
	s.ServeHTTP(out, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	if want := `stone_runs_stopped_total{pipeline="other",state="canceled"} 1`; !strings.Contains(out.Body.String(), want) {
		t.Errorf("no %s in\n%s", want, out.Body.String())
	}
}

// A child draws on the budgets of its parent, unless that is a run of another tenant.
func TestChildDraws(t *testing.T) {
	j := memdb.New(t)
	said := dag.NewType[string]("said")
	say := func(name string) serve.Pipeline {
		return serve.Pipeline{Ashlar: stone.Func0(name, said, func(context.Context) (string, error) { return name, nil })}
	}
	s := serveAll(t, serve.Config{Journal: j, Access: tenants{}, Pipelines: []serve.Pipeline{say("up"), say("child")},
		Budgets: []budget.Rule{{Shared: budget.Shared{Name: "ups", Per: budget.Day, Limits: budget.Limits{USD: new(1.0)}}, Pipeline: "up"}}})
	start := func(tenant, id, body string) journal.RunInfo {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+"/v1/runs/"+id, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Tenant", tenant)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		info, err := j.Find(t.Context(), tenant+"."+id)
		if err != nil {
			t.Fatal(resp.Status, err)
		}
		return info
	}
	start("acme", "a", `{"pipeline":"up"}`)
	for tenant, want := range map[string]int{"acme": 1, "globex": 0} {
		if got := start(tenant, "b", `{"pipeline":"child","labels":{"parent":"acme.a"}}`); len(got.Budgets) != want {
			t.Errorf("the child of %s draws on %v, want %d", tenant, got.Budgets, want)
		}
	}
}
