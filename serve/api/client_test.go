package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/cel"
)

var number = dag.NewType[int]("number")

// house is an address that one server after another serves.
type house struct {
	*testing.T
	*api.Client
	*servetest.Steps
	journal *sqlite.DB
	http    *httptest.Server
	server  atomic.Pointer[servetest.Server]
	gone    atomic.Bool // connections are closed without a reply
}

func newHouse(t *testing.T) *house {
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	h.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.gone.Load() {
			panic(http.ErrAbortHandler)
		}
		h.server.Load().ServeHTTP(w, r)
	}))
	h.Client = &api.Client{URL: h.http.URL + "/", Token: "secret"}
	h.start()
	t.Cleanup(h.http.Close)
	return h
}

func (h *house) start() {
	var steps []stone.Ashlar
	for i := range 60 {
		steps = append(steps, stone.Func0(fmt.Sprintf("s%d", i), number, func(context.Context) (int, error) {
			time.Sleep(2 * time.Millisecond)
			return i, nil
		}))
	}
	greeter := cel.New(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}}, cel.Config{Expression: `{"text": "Hello, " + call.input.name}`})
	h.server.Store(servetest.Start(h, serve.Config{
		Journal: h.journal, Access: token{}, Scan: 5 * time.Millisecond, Applicator: &call.Applicator{Registry: call.NewRegistry(greeter)},
		Pipelines: []serve.Pipeline{
			{Name: "page", Ashlar: h.Publish()}, {Name: "many", Ashlar: stone.Seq("many", steps...)}, {Name: "slow", Ashlar: h.Slow()},
		},
	}))
}

// token is an Access that admits callers with a token.
type token struct{}

func (token) Principal(r *http.Request) (who serve.Principal, err error) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		return who, errors.New("who are you?")
	}
	return who, nil
}

func TestRun(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	run, err := h.Start(ctx, "a", api.Start{Pipeline: "page", Input: json.RawMessage(`{"text":"marble"}`), Labels: map[string]string{"who": "x"}})
	if err != nil || run.ID != "a" {
		t.Fatal(run, err)
	}
	if run, err = h.Result(ctx, "a"); err != nil || run.State != journal.Waiting {
		t.Fatal(run, err)
	}
	open, err := h.Questions(ctx, "")
	if err != nil || len(open) != 1 || open[0].Text != "Publish About marble?" {
		t.Fatal(open, err)
	}
	if _, err := h.Answer(ctx, "a", api.Answer{Question: open[0].Path, Response: "perhaps"}); problem(err).Type != problems.Invalid {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if _, err := h.Answer(ctx, "a", api.Answer{Question: open[0].Path, Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	if run, err = h.Result(ctx, "a"); err != nil || run.Result == nil || string(run.Result.Content) != `"yes: About marble"` {
		t.Fatal(run, err)
	}
	if n, err := h.Node(ctx, "a", run.Result.ID.String()); err != nil || n.Type != "page" {
		t.Error(n, err)
	}
	if all, err := h.Questions(ctx, "a"); err != nil || len(all) != 1 || all[0].Response != "yes" {
		t.Error(all, err)
	}
	if _, err := h.Resume(ctx, "a", api.Resume{}); problem(err).Type != problems.Conflict {
		t.Errorf("resume of a run that is done: %v", err)
	}
	if err := h.Remove(ctx, "a"); err != nil {
		t.Error(err)
	}
	if _, err := h.Client.Run(ctx, "a"); problem(err).Type != problems.NotFound {
		t.Errorf("a run that was removed: %v", err)
	}
	if all, err := h.Pipelines(ctx); err != nil || len(all) != 3 || all[1].Name != "page" || !all[1].Asks {
		t.Error(all, err)
	}
}

// problem returns the problem that the server reported.
func problem(err error) *api.Problem {
	p := &api.Problem{}
	errors.As(err, &p)
	return p
}

func TestProblems(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "pages"}); problem(err).Type != problems.NoPipeline || !strings.Contains(err.Error(), `did you mean "page"?`) {
		t.Error(err)
	}
	if _, err := h.Start(ctx, "a/../b", api.Start{Pipeline: "slow", Input: json.RawMessage(`{"text":"x"}`)}); problem(err).Type != problems.Invalid {
		t.Error(err)
	}
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "slow", Input: json.RawMessage(`{"text":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "slow", Input: json.RawMessage(`{"text":"x"}`)}); err != nil {
		t.Errorf("the same request again: %v", err)
	}
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "many"}); problem(err).Type != problems.Conflict {
		t.Error(err)
	}
	if run, err := h.Cancel(ctx, "a"); err != nil || run.State != journal.Canceled {
		t.Error(run, err)
	}
	wrong := api.Client{URL: h.URL}
	if _, err := wrong.Run(ctx, "a"); problem(err).Status != 401 {
		t.Error(err)
	}
	nobody := api.Client{URL: "http://127.0.0.1:1", Patience: -1}
	if _, err := nobody.Run(ctx, "a"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := (&api.Client{URL: "http://127.0.0.1:1"}).Run(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRuns(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	close(h.Gate)
	for i := range 7 {
		run, err := h.Start(ctx, "", api.Start{Pipeline: "slow", Input: json.RawMessage(`{"text":"x"}`), Labels: map[string]string{"n": strconv.Itoa(i % 2)}})
		if err == nil {
			_, err = h.Result(ctx, run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		q    journal.Query
		want int
	}{
		{journal.Query{Limit: 2}, 7}, {journal.Query{Labels: map[string]string{"n": "1"}, Limit: 1}, 3},
		{journal.Query{States: []journal.State{journal.Failed, journal.Running}}, 0}, {journal.Query{Since: time.Now()}, 0},
		{journal.Query{Until: time.Now(), Pipeline: "slow", States: []journal.State{journal.Done}}, 7},
		{journal.Query{Ended: time.Now().Add(-time.Hour)}, 7}, {journal.Query{Ended: time.Now()}, 0},
		{journal.Query{Text: "x"}, 0}, {journal.Query{MinCost: 1}, 0},
	} {
		ids := map[string]bool{}
		for run, err := range h.Runs(ctx, tt.q) {
			if err != nil {
				t.Fatal(err)
			}
			ids[run.ID] = true
		}
		if len(ids) != tt.want {
			t.Errorf("%+v: %d runs, want %d", tt.q, len(ids), tt.want)
		}
	}
}

// A request fails at once if the server asks for too long a wait.
func TestLongWait(t *testing.T) {
	after := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, tt := range []struct {
		ctx      context.Context
		patience time.Duration
		after    string
	}{
		{t.Context(), 0, "61"}, {t.Context(), time.Hour, "301"}, {soon, time.Hour, "120"},
	} {
		after = tt.after
		_, err := (&api.Client{URL: s.URL, Patience: tt.patience}).Run(tt.ctx, "a")
		if problem(err).Status != 503 || !strings.Contains(err.Error(), "asks to wait") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	after = "86400"
	for _, err := range (&api.Client{URL: s.URL}).Events(t.Context(), "a", "") {
		if problem(err).Status != 503 {
			t.Errorf("a stream: %v", err)
		}
	}
}

// A stream whose connection breaks repeatedly, also by restarts of the server, has every event
// once.
func TestEvents(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "many"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	var last api.Event
	for e, err := range h.Events(ctx, "a", "") {
		if err != nil {
			t.Fatal(err)
		}
		if last = e; e.Step != nil {
			got = append(got, e.ID)
		}
		switch n := len(got); {
		case n == 40 || n == 80:
			h.gone.Store(true)
			h.server.Load().Stop()
			h.http.CloseClientConnections()
			h.start()
			h.gone.Store(false)
		case n%7 == 0:
			h.http.CloseClientConnections()
		}
	}
	var want []string
	for row, err := range h.journal.Follow(ctx, "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, strconv.FormatInt(row.Seq, 10))
	}
	if !slices.Equal(got, want) || len(got) < 120 {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if last.Run == nil || last.Run.State != journal.Done {
		t.Errorf("the last event is %+v", last)
	}
	for e, err := range h.Events(ctx, "a", want[50]) {
		if err != nil || e.ID != want[51] {
			t.Errorf("after %s comes %s, %v, want %s", want[50], e.ID, err, want[51])
		}
		break
	}
	for _, err := range h.Events(ctx, "b", "") {
		if problem(err).Type != problems.NotFound {
			t.Errorf("events of a run that nobody has: %v", err)
		}
	}
}

// A stream of new events has no earlier ones, and misses none when its connection breaks.
func TestEventsFromNow(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "page", Input: json.RawMessage(`{"text":"marble"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Result(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	before, err := h.journal.Last(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range h.Events(ctx, "a", api.Now) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Step != nil {
			got = append(got, e.ID)
		} else if e.Run.State == journal.Waiting {
			h.gone.Store(true)
			h.http.CloseClientConnections()
			if err := journal.Answer(ctx, h.journal, "a", "approve", ask.Answer{Response: "yes"}); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(20*time.Millisecond, func() { h.gone.Store(false) })
		}
	}
	var want []string
	for row, err := range h.journal.Follow(ctx, "a", before) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, strconv.FormatInt(row.Seq, 10))
	}
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Result waits while servers restart.
func TestResultOverRestart(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	if _, err := h.Start(ctx, "a", api.Start{Pipeline: "many"}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range 2 {
			time.Sleep(30 * time.Millisecond)
			h.gone.Store(true)
			h.http.CloseClientConnections()
			time.Sleep(30 * time.Millisecond)
			h.gone.Store(false)
		}
	}()
	if run, err := h.Result(ctx, "a"); err != nil || run.State != journal.Done {
		t.Error(run, err)
	}
}

func TestAct(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	ada := json.RawMessage(`{"proto":1,"trace":{"id":"r-1"},"task":{"intent":"text/greet"},"input":{"name":"Ada"}}`)
	for range 2 {
		if result, err := h.Act(ctx, "x", ada); err != nil || string(result.Out) != `{"text":"Hello, Ada"}` {
			t.Error(result, err)
		}
	}
	bob := json.RawMessage(strings.Replace(string(ada), "Ada", "Bob", 1))
	var refused *api.ActError
	if _, err := h.Act(ctx, "x", bob); !errors.As(err, &refused) || !strings.Contains(err.Error(), "trace/id-used") {
		t.Errorf("another request with the id: %v", err)
	}
	if _, err := h.Act(ctx, "", map[string]any{"proto": 1}); !errors.As(err, &refused) || refused.Type != reasons.InvalidRequest {
		t.Errorf("no request: %v", err)
	}
	var last api.Chunk
	for c, err := range h.Stream(ctx, "", bob) {
		if last = c; err != nil {
			t.Fatal(err)
		}
	}
	if last.Result == nil || string(last.Result.Out) != `{"text":"Hello, Bob"}` {
		t.Errorf("the stream ends with %+v", last)
	}
	for _, err := range h.Stream(ctx, "", map[string]any{"proto": 1}) {
		if !errors.As(err, &refused) {
			t.Error(err)
		}
	}
	if caps, err := h.Caps(ctx); err != nil || len(caps) != 1 || caps[0].ID != "greeter" {
		t.Error(caps, err)
	}
}
