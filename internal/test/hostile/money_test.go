package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
)

var perMillion = budget.Price{In: 1000, Out: 10_000, CacheRead: 100}

// A till is a server of models that bills each request that it answers, as far as it
// has answered it: 100 tokens in, of them 40 from a cache, and 20 out.
type till struct {
	*server
	mu     sync.Mutex
	billed float64
	asked  []request
}

type request struct {
	Model     string
	MaxTokens int `json:"max_tokens"`
	Max       int `json:"max_completion_tokens"`
	Messages  []struct{ Role string }
}

const once = (60*1000 + 40*100 + 20*10_000) / 1e6

func newTill(t *testing.T) *till {
	x := &till{}
	x.server = newServer(t, http.HandlerFunc(x.serve))
	return x
}

func (x *till) serve(w http.ResponseWriter, r *http.Request) {
	var req request
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	x.mu.Lock()
	x.billed += once
	x.asked = append(x.asked, req)
	x.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	text, done := "ok", `"finish_reason":"stop"`
	switch {
	case req.Model == "bad":
		text = "bad"
	case req.Model == "judge":
		text = `{\"score\":1,\"pass\":true}`
	case req.Model == "tools" && req.Messages[len(req.Messages)-1].Role != "tool":
		send(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]}}]}`)
		done = `"finish_reason":"tool_calls"`
	}
	send(`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`, text)
	send(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40}}}`)
	switch req.Model {
	case "error":
		send(`{"error":{"message":"out of order","code":500}}`)
		return
	case "cut":
		panic(http.ErrAbortHandler)
	case "slow":
		<-r.Context().Done()
		return
	}
	send(`{"choices":[{"index":0,"delta":{},%s}]}`, done)
	send("[DONE]")
}

func (x *till) total() float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.billed
}

func (x *till) model(name string) llm.Model {
	return llm.Priced(openai.New(openai.Config{Model: name, URL: x.URL, Key: "none", Retry: llm.Retry{Max: -1}}), perMillion)
}

var (
	answer = dag.NewType[call.JSON]("answer")
	spoken = dag.NewType[agent.Text]("spoken")
	items  = dag.NewType[[]int]("items")
	item   = dag.NewType[int]("item")
)

// app is an applicator with a capability for each name.
func (x *till) app(names ...string) *call.Applicator {
	var caps []call.Capability
	for _, name := range names {
		m := call.Metadata{ID: "m/" + name, Intents: []string{"x/y"}}
		if name == "judge" {
			m.Intents = []string{terms.Grade}
		}
		caps = append(caps, model.New(m, model.Config{Model: x.model(name)}))
	}
	return &call.Applicator{Registry: call.NewRegistry(caps...), Checks: map[string]call.Check{"good": func(_ context.Context, s call.Subject) error {
		if strings.Contains(string(s.Out), "bad") {
			return errors.New("bad")
		}
		return nil
	}}}
}

func (x *till) looker() stone.Ashlar {
	tool := agent.Tool{Tool: llm.Tool{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
		return agent.Result{Text: "seen"}, nil
	}}
	return agent.New("looker", spoken, x.model("tools"), agent.Config{User: agent.Say("look"), Use: []agent.Middleware{agent.Use(tool)}})
}

// The cost of a run in its journal, on its account and in its events equals the bill of
// the server: after failures, in races, and when the run is stopped and resumed.
func TestBilledIsShown(t *testing.T) {
	on := true
	caps := func(names ...string) call.Dispatch {
		d := call.Dispatch{}
		for _, name := range names {
			d.Candidates = append(d.Candidates, "m/"+name)
		}
		return d
	}
	race, repaired := caps("slow", "good"), caps("bad")
	race.Strategy, race.Hedge = call.Race, 500*time.Millisecond // so that the first has said what it costs
	repaired.Repair = &call.Repair{Cap: "m/good", Max: 1}
	must := call.Done{Must: []string{"good"}}
	for name, tc := range map[string]struct {
		make     func(x *till) stone.Ashlar
		requests int
	}{
		"a call":           {func(x *till) stone.Ashlar { return x.call(x.app("good"), caps("good"), must) }, 1},
		"a cascade":        {func(x *till) stone.Ashlar { return x.call(x.app("bad", "good"), caps("bad", "good"), must) }, 2},
		"a race":           {func(x *till) stone.Ashlar { return x.call(x.app("slow", "good"), race, must) }, 2},
		"a repair":         {func(x *till) stone.Ashlar { return x.call(x.app("bad", "good"), repaired, must) }, 2},
		"an error midway":  {func(x *till) stone.Ashlar { return x.call(x.app("error", "good"), caps("error", "good"), must) }, 2},
		"a stream cut off": {func(x *till) stone.Ashlar { return x.call(x.app("cut", "good"), caps("cut", "good"), must) }, 2},
		"a judge": {func(x *till) stone.Ashlar {
			app := x.app("good", "judge")
			app.Policy.Default.Judge.On = &on
			return x.call(app, caps("good"), must)
		}, 2},
		"a check": {func(x *till) stone.Ashlar {
			app := x.app("good", "judge")
			app.Checks["asked"] = call.CheckBy("asked", app.Registry, "m/judge")
			return x.call(app, caps("good"), call.Done{Must: []string{"asked"}})
		}, 2},
		"an agent": {(*till).looker, 2},
		"an agent that fails": {func(x *till) stone.Ashlar {
			return stone.Rescue("r", agent.New("cut", spoken, x.model("cut"), agent.Config{User: agent.Say("x")}), x.looker())
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTill(t)
			memory := memdb.New(t)
			stop := make(chan struct{})
			first := stone.Func0("first", item, func(ctx context.Context) (int, error) { return 1, nil })
			pause := stone.Func0("pause", item, func(ctx context.Context) (int, error) {
				select {
				case <-stop:
					return 1, nil
				default:
					return 0, stone.Fail("stopped", "before the end")
				}
			})
			p := stone.Seq("all", first, tc.make(x), pause)
			account := budget.New(budget.Limits{})
			ctx := budget.With(t.Context(), account)
			var events float64
			var mu sync.Mutex
			cfg := stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{}), Watch: event.Func(slog.LevelInfo, func(e event.Event) {
				if d, ok := e.Data.(event.ModelResponse); ok && !d.Replayed {
					mu.Lock()
					events += d.Usage.USD
					mu.Unlock()
				}
			})}
			if _, err := stone.Run(ctx, p, cfg); err == nil || !strings.Contains(err.Error(), "stopped") {
				t.Fatalf("the run was not stopped: %v", err)
			}
			close(stop)
			if _, err := stone.Run(ctx, p, cfg); err != nil {
				t.Fatal(err)
			}
			info, err := memory.Find(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			billed := x.total()
			if n := int(x.requests.Load()); n != tc.requests {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			for what, shown := range map[string]float64{"journal": info.Usage.USD, "account": account.Spent().USD, "events": events} {
				if math.Abs(billed-shown) > 1e-9 {
					t.Errorf("%s shows %v, billed are %v", what, shown, billed)
				}
			}
			if info.Usage.Estimated {
				t.Error("what the server said is taken for an estimate")
			}
		})
	}
}

func (x *till) call(app *call.Applicator, d call.Dispatch, done call.Done) stone.Ashlar {
	return call.New("ask", answer, call.Spec{Applicator: app, Intent: "x/y", Dispatch: d, Done: done,
		Input: dag.Derive(dag.Nothing, func(struct{}) any { return map[string]any{"text": "go"} })})
}

// A run overdraws its budget by one estimate at most, with any number of lanes.
func TestLanesOverdrawByOneEstimate(t *testing.T) {
	x := newTill(t)
	const limit = 3.0
	for name, lanes := range map[string][2]stone.Ashlar{
		"agents": {
			agent.New("lane", spoken, x.model("good"), agent.Config{User: agent.Say("x"), MaxTokens: 50}),
			stone.Func("sum", dag.All(spoken), item, func(_ context.Context, all []agent.Text) (int, error) { return len(all), nil }),
		},
		"calls": {
			x.call(x.app("good"), call.Dispatch{}, call.Done{}),
			stone.Func("sum", dag.All(answer), item, func(_ context.Context, all []call.JSON) (int, error) { return len(all), nil }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := x.total()
			list := make([]int, 256)
			for i := range list {
				list[i] = i
			}
			p := stone.Seq("all", stone.Func0("list", items, func(context.Context) ([]int, error) { return list, nil }), stone.Map("each", items, item, lanes[0]), stone.Reduce(lanes[1]))
			account := budget.New(budget.Limits{USD: new(limit)})
			_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{})
			if !errors.As(err, new(*budget.ExhaustedError)) {
				t.Errorf("got %v, want that the budget is exhausted", err)
			}
			billed := x.total() - before
			const estimate = 0.6 // 50 tokens out, and a few in
			if most := limit + estimate; name == "agents" && billed > most || billed > limit+42 || billed < limit-estimate {
				t.Errorf("%v was billed within %v", billed, limit)
			}
			if spent := account.Spent().USD; math.Abs(spent-billed) > 1e-9 {
				t.Errorf("%v was billed, the account says %v", billed, spent)
			}
		})
	}
}

// A budget over money that cannot be kept is refused before the first request.
func TestNothingIsAskedWithoutMoneyOrPrice(t *testing.T) {
	x := newTill(t)
	unpriced := openai.New(openai.Config{Model: "good", URL: x.URL, Key: "none"})
	cap := model.New(call.Metadata{ID: "m/x", Intents: []string{"x/y"}}, model.Config{Model: unpriced})
	app := &call.Applicator{Registry: call.NewRegistry(cap)}
	for name, tc := range map[string]struct {
		p    stone.Ashlar
		usd  float64
		kind error
	}{
		"an agent that is too dear": {x.looker(), 1e-8, &budget.ExhaustedError{}},
		"a call that is too dear":   {x.call(x.app("good"), call.Dispatch{}, call.Done{}), 1e-8, &budget.ExhaustedError{}},
		"an agent without a price":  {agent.New("a", spoken, unpriced, agent.Config{User: agent.Say("x")}), 100, &budget.UnpricedError{}},
		"a call without a price":    {x.call(app, call.Dispatch{}, call.Done{}), 100, &budget.UnpricedError{}},
	} {
		ctx := budget.With(t.Context(), budget.New(budget.Limits{USD: new(tc.usd)}))
		_, err := stone.Run(ctx, tc.p, stone.Config{})
		var kinded interface{ FailureKind() string }
		want := tc.kind.(interface{ FailureKind() string }).FailureKind()
		if !errors.As(err, &kinded) || kinded.FailureKind() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	own := call.New("ask", answer, call.Spec{Applicator: app, Intent: "x/y", Budget: call.Budget{USD: new(1.0)}})
	if err := stone.Validate(own, stone.Given{}).Err(); err == nil || !strings.Contains(err.Error(), "needs a price") {
		t.Errorf("a call with a budget of its own: %v", err)
	}
	if n := x.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// The first answer is bounded by the remaining tokens.
func TestTokensBoundTheFirstAnswer(t *testing.T) {
	x := newTill(t)
	for _, p := range []stone.Ashlar{x.looker(), x.call(x.app("good"), call.Dispatch{}, call.Done{})} {
		ctx := budget.With(t.Context(), budget.New(budget.Limits{Tokens: new(33)}))
		_, _ = stone.Run(ctx, p, stone.Config{}) // it may well fail
	}
	if len(x.asked) != 2 {
		t.Fatalf("asked %d times, want once each", len(x.asked))
	}
	for _, r := range x.asked {
		if n := max(r.MaxTokens, r.Max); n != 33 {
			t.Errorf("%s was sent the bound %d, want 33", r.Model, n)
		}
	}
}

// A wrapper around a model that draws on an account itself ends the agent with the kind
// of the account: Retry does not take it for a failure of the model.
func TestExhaustedStaysExhausted(t *testing.T) {
	var asked atomic.Int64
	refuses := refusing{&asked}
	p := agent.New("a", spoken, refuses, agent.Config{User: agent.Say("x"), Options: []stone.LeafOption{
		stone.Retry{Attempts: 5, Kinds: []kind.Kind{reasons.ModelFailed}},
	}})
	_, err := stone.Run(t.Context(), p, stone.Config{})
	var f *stone.Failure
	if !errors.As(err, &f) || f.Kind != budget.Kind || asked.Load() != 1 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

type refusing struct{ asked *atomic.Int64 }

func (r refusing) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		r.asked.Add(1)
		yield(llm.Delta{Reply: &llm.Reply{}}, fmt.Errorf("my account: %w", &budget.ExhaustedError{Limit: "max-usd"}))
	}
}

// A resumed run keeps its budget, less what it has spent, until a flag changes it.
// Requests that the budget refused are not shown as possibly paid.
func TestResumeKeepsTheBudget(t *testing.T) {
	x := newTill(t)
	p := newProject(t, map[string]string{
		".stone/stone.edn": fmt.Sprintf(`{:providers {:here {:protocol :openai :url %q}}
			:capabilities {:m/good {:cap/kind :llm :provider :here :model "good" :cap/intents #{:x/y}}}
			:models [{:model "good" :date "2026-11-21" :usd-per-mtok-in 1000 :usd-per-mtok-out 10000 :usd-per-mtok-cache-read 100}]}`, x.URL),
		"p.edn": `{:nodes [{:op :call :intent :x/y :as :a} {:op :call :intent :x/y :as :b :input {:t {:slot/id :a}}}
			{:op :call :intent :x/y :as :c :input {:t {:slot/id :b}}} {:op :emit :input {:slot/id :c}}]}`,
		"unpriced.edn": fmt.Sprintf(`{:providers {:here {:protocol :openai :url %q}}
			:capabilities {:m/good {:cap/kind :llm :provider :here :model "good" :cap/intents #{:x/y}}}}`, x.URL),
	})
	p.env = append(p.env, "STONE_TRUST=1")
	step := func(requests int64, code int, want string, args ...string) {
		t.Helper()
		r := p.stone(args...)
		if n := x.requests.Load(); n != requests || r.code != code || !strings.Contains(r.stderr+r.stdout, want) {
			t.Errorf("stone %s: %d requests and code %d, want %d and %d, with %q:\n%s%s", strings.Join(args, " "), n, r.code, requests, code, want, r.stdout, r.stderr)
		}
	}
	step(0, 1, "needs a price for model", "run", "--config=unpriced.edn", "--grant=net", "--max-usd=5", "p.edn")
	step(1, 1, "budget/exhausted", "run", "--grant=net", "--id=r", "--max-roundtrips=1", "p.edn")
	step(1, 1, "budget/exhausted", "resume", "r")
	step(2, 1, "budget/exhausted", "resume", "r", "--max-roundtrips=2")
	step(2, 1, "budget/exhausted", "resume", "r")
	if r := p.stone("show", "r"); strings.Contains(r.stdout, "possibly paid") {
		t.Errorf("what was refused is taken for paid:\n%s", r.stdout)
	}
	step(2, 1, "max-usd", "resume", "r", "--max-roundtrips=10", "--max-usd=0.5")
	step(3, 0, "ok", "resume", "r", "--max-usd=5")
	cost := fmt.Sprintf("%.4f", x.total())
	step(3, 0, cost, "runs")
	step(3, 0, cost, "show", "r")
	data := filepath.Join(p.dir, "r.json")
	request := `{"proto":1,"trace":{"id":"t"},"task":{"intent":"x/y"},"input":{"text":"go"}}`
	if err := os.WriteFile(data, []byte(request), 0o600); err != nil {
		t.Fatal(err)
	}
	step(4, 0, fmt.Sprintf(`"usd":%v`, once), "act", "--grant=net", "r.json")
}
