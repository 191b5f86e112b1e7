package batch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/batch"
)

var (
	task   = dag.NewType[int]("task")
	reply  = dag.NewType[agent.Text]("reply")
	report = dag.NewType[[]string]("report")
)

// asking asks a model n questions and collects its answers.
func asking(n int, model llm.Model, use ...agent.Middleware) stone.Ashlar {
	list := dag.ReaderFunc(func(dag.DAG) (all []int, err error) {
		for i := range n {
			all = append(all, i)
		}
		return all, nil
	})
	ask := agent.New("ask", reply, model, agent.Config{User: agent.Prompt(task, func(i int) string { return fmt.Sprintf("question %d", i) }), Use: use, MaxTurns: 9, MaxTokens: 500})
	return stone.Seq("asking", stone.Map("each", list, task, ask), stone.Reduce(stone.Func("collect", dag.All(reply), report,
		func(_ context.Context, all []agent.Text) (texts []string, err error) {
			for _, one := range all {
				texts = append(texts, one.Text)
			}
			return texts, nil
		})))
}

func wanted(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("answer %d", i))
	}
	return all
}

// priced gives the model m a price: 1 USD for a million tokens in, and 10 out.
func priced(ctx context.Context) context.Context {
	return llm.WithTable(ctx, func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1, Out: 10}} })
}

// usd is the full price of an answer of said.
const usd = 0.001 + 0.001

func config(j journal.Journal, id string) (stone.Config, batch.Config) {
	return stone.Config{RunID: id, Recorder: journal.Keep(j, journal.Options{})}, batch.Config{Journal: j, Every: time.Millisecond}
}

// check fails unless a run has the answers to n questions.
func check(t *testing.T, result stone.Result, err error, n int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if texts, err := report.Of(result.Node); err != nil || !slices.Equal(texts, wanted(n)) {
		t.Errorf("got %v, %v", texts, err)
	}
}

// All lanes ask in one batch, for half the price.
func TestRun(t *testing.T) {
	for protocol := range models("http://127.0.0.1:1") {
		t.Run(protocol, func(t *testing.T) {
			b, j := batchtest.New(t, 3), memdb.New(t)
			run, cfg := config(j, "r")
			var seen []batch.Status
			cfg.Watch = func(all []batch.Status) { seen = append(seen, all...) }
			result, err := batch.Run(priced(t.Context()), asking(30, models(b.URL)[protocol]), run, cfg)
			check(t, result, err, 30)
			if len(b.Batches) != 1 || b.Direct != 0 {
				t.Errorf("%d batches and %d direct requests", len(b.Batches), b.Direct)
			}
			steps, err := j.Steps(t.Context(), "r")
			n, total := journal.Total(steps)
			if want := 30 * usd / 2; err != nil || total.USD < want*0.999 || total.USD > want*1.001 || total.Possible.Attempts > 0 {
				t.Errorf("%d steps cost %+v, %v; want %v USD", n, total, err, want)
			}
			if len(seen) < 3 || !strings.Contains(seen[0].String(), "of 30 done, expires in 24h") && protocol != "gemini" {
				t.Errorf("seen %v", seen)
			}
		})
	}
}

var look = tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "nothing", nil }, tool.Effects())

// fiveTurns calls look four times before it answers.
func fiveTurns(protocol, body string) string {
	if n := strings.Count(body, `"role":"tool"`); n < 4 {
		return fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, n)
	}
	return batchtest.Echo(protocol, body)
}

// BenchmarkBatch reports what a thousand requests, and a thousand agents of five turns, cost directly and in
// batches: USD, requests over HTTP, and CPU time of both sides.
func BenchmarkBatch(b *testing.B) {
	const lanes = 1_000
	for _, work := range []string{"requests", "agents"} {
		for _, how := range []string{"direct", "batch"} {
			b.Run(work+"/"+how, func(b *testing.B) {
				var spent float64
				var sent, n int
				used := cputime.Used()
				for b.Loop() {
					s, j := batchtest.New(b, 0), memdb.New(b)
					var use []agent.Middleware
					if work == "agents" {
						s.Answer, use = fiveTurns, []agent.Middleware{look}
					}
					run, cfg := config(j, "r")
					ctx := budget.With(priced(b.Context()), budget.New(budget.Limits{}))
					p := asking(lanes, models(s.URL)["chat"], use...)
					var err error
					if how == "batch" {
						_, err = batch.Run(ctx, p, run, cfg)
					} else {
						_, err = stone.Run(ctx, p, run)
					}
					if err != nil {
						b.Fatal(err)
					}
					spent, sent, n = budget.From(ctx).Spent().USD, s.Requests, n+1
					s.Close()
				}
				b.ReportMetric(spent, "USD")
				b.ReportMetric(float64(sent), "HTTP-requests")
				b.ReportMetric((cputime.Used()-used).Seconds()/float64(n), "cpu-s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// Agents go turn by turn: all lanes of a turn are one batch.
func TestAgents(t *testing.T) {
	b, j := batchtest.New(t, 1), memdb.New(t)
	b.Answer = fiveTurns
	run, cfg := config(j, "r")
	const cost = 20 * (4*(10*1+5*10)/1e6 + usd) / 2 // of four turns with a call and the last
	ctx := budget.With(priced(t.Context()), budget.New(budget.Limits{USD: new(cost + 20*0.0026)}))
	result, err := batch.Run(ctx, asking(20, models(b.URL)["chat"], look), run, cfg)
	if spent := budget.From(ctx).Spent().USD; spent < cost*0.99 || spent > cost*1.01 {
		t.Errorf("spent %v, want %v", spent, cost)
	}
	check(t, result, err, 20)
	if len(b.Batches) != 5 || b.Direct != 0 {
		t.Errorf("%d batches and %d direct requests", len(b.Batches), b.Direct)
	}
}

// A run that asks no model leaves no notes.
func TestNoRequests(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, j := range []journal.Journal{memdb.New(t), db} {
		run, cfg := config(j, "r")
		p := stone.Func0("three", task, func(context.Context) (int, error) { return 3, nil })
		if _, err := batch.Run(t.Context(), p, run, cfg); err != nil {
			t.Fatal(err)
		}
		if runs, err := j.Runs(t.Context(), journal.Query{}); err != nil || len(runs) != 1 || runs[0].ID != "r" {
			t.Errorf("%v, %v", runs, err)
		}
	}
}

// Requests that are held back count towards no rate: they are not sent.
func TestNoRate(t *testing.T) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	model := anthropic.New(anthropic.Config{URL: b.URL, Key: "key", Model: "m", MaxTokens: 500, Limiter: limit.New(limit.Limits{RequestsPerMinute: 1})})
	run, cfg := config(j, "r")
	result, err := batch.Run(t.Context(), asking(50, model), run, cfg)
	check(t, result, err, 50)
}

// Calls go candidate by candidate: what a check refuses of the small model is asked of the large one in the next
// batch. Of a tournament, all candidates are asked in one visit.
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		strategy string
		batches  int
	}{{call.Cascade, 2}, {call.Tournament, 2}, {call.Race, 2}} {
		t.Run(c.strategy, func(t *testing.T) {
			b, j := batchtest.New(t, 0), memdb.New(t)
			b.Answer = func(protocol, body string) string {
				if strings.Contains(body, `"small"`) {
					return batchtest.Said(protocol, "no idea")
				}
				return batchtest.Echo(protocol, body)
			}
			var caps []call.Capability
			for i, name := range []string{"small", "large"} {
				m := openai.New(openai.Config{URL: b.URL, Key: "key", Model: name, Protocol: openai.ChatCompletions})
				caps = append(caps, model.New(call.Metadata{ID: "model/" + name, Intents: []string{"ask"}, Cost: call.Cost{USD: float64(i)}}, model.Config{Model: m}))
			}
			app := &call.Applicator{Registry: call.NewRegistry(caps...), Checks: map[string]call.Check{"answers": func(_ context.Context, s call.Subject) error {
				if !strings.Contains(string(s.Out), "answer") {
					return errors.New("it does not answer")
				}
				return nil
			}}}
			list := dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{0, 1, 2, 3}, nil })
			text := dag.NewType[any]("text")
			ask := call.New("ask", text, call.Spec{Applicator: app, Intent: "ask", Dispatch: call.Dispatch{Strategy: c.strategy},
				Input: call.From(dag.Derive(task, func(i int) string { return fmt.Sprintf("question %d", i) })), Done: call.Done{Must: []string{"answers"}}})
			p := stone.Seq("p", stone.Map("each", list, task, ask), stone.Reduce(stone.Func("collect", dag.All(text), report,
				func(_ context.Context, all []any) (texts []string, err error) {
					for _, one := range all {
						texts = append(texts, fmt.Sprint(one))
					}
					return texts, nil
				})))
			run, cfg := config(j, "r")
			result, err := batch.Run(t.Context(), p, run, cfg)
			if err != nil {
				t.Fatal(err)
			}
			texts, _ := report.Of(result.Node)
			for i, one := range texts {
				if !strings.Contains(one, fmt.Sprintf("answer %d", i)) {
					t.Errorf("got %q", texts)
				}
			}
			if len(b.Batches) != c.batches || b.Direct != 0 || len(texts) != 4 {
				t.Errorf("%d batches, %d direct requests, %q, lost %v", len(b.Batches), b.Direct, texts, result.Lost)
				for _, l := range result.Lost {
					t.Log(l.Failure.JSON())
				}
			}
		})
	}
}

// A fallback does not ask the next model while a batch has the question of the first.
func TestFallback(t *testing.T) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	b.Fate = func(body string, _ int) string {
		if strings.Contains(body, `"model":"first"`) && strings.Contains(body, "question 1") {
			return "errored"
		}
		return ""
	}
	m := func(name string) llm.Model {
		return openai.New(openai.Config{URL: b.URL, Key: "key", Model: name, Protocol: openai.ChatCompletions})
	}
	run, cfg := config(j, "r")
	result, err := batch.Run(t.Context(), asking(3, llm.Fallback(m("first"), m("second"))), run, cfg)
	check(t, result, err, 3)
	if len(b.Batches) != 2 || len(b.Batches[0].Keys) != 3 || len(b.Batches[1].Keys) != 1 {
		t.Errorf("%d batches", len(b.Batches))
	}
}

// A request that another server gets under such a path is sent, whatever it is.
func TestOtherServers(t *testing.T) {
	j := memdb.New(t)
	var met []string
	url := fakeserver.Serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		met = append(met, r.URL.Path+" "+string(body))
		fmt.Fprint(w, `{"proto":1,"result":{"type":"value","out":"done"}}`)
	})
	said := dag.NewType[string]("said")
	var steps []stone.Ashlar
	for _, path := range []string{"/messages", "/chat/completions", "/responses"} {
		capability := rest.New(call.Metadata{ID: "rest/" + strings.ReplaceAll(path[1:], "/", "-"), Intents: []string{"say"}}, rest.Config{URL: url + path})
		app := &call.Applicator{Registry: call.NewRegistry(capability)}
		steps = append(steps, call.New("say"+strings.ReplaceAll(path, "/", "-"), said, call.Spec{Applicator: app, Intent: "say"}))
	}
	run, cfg := config(j, "r")
	if _, err := batch.Run(t.Context(), stone.Seq("p", steps...), run, cfg); err != nil || len(met) != 3 {
		t.Errorf("%v; the server met %q", err, met)
	}
}

// What was asked with an old prompt is answered with it: a new one makes no second batch.
func TestChangedPrompt(t *testing.T) {
	b, j := batchtest.New(t, 1), memdb.New(t)
	run, cfg := config(j, "r")
	cfg.NoWait = true
	for i := range 2 {
		list := dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{0, 1, 2}, nil })
		ask := agent.New("ask", reply, models(b.URL)["chat"], agent.Config{
			System: agent.Say(fmt.Sprint("prompt ", i)), User: agent.Prompt(task, func(n int) string { return fmt.Sprintf("question %d", n) }),
		})
		p := stone.Seq("asking", stone.Map("each", list, task, ask), stone.Reduce(stone.Func("collect", dag.All(reply), report,
			func(_ context.Context, all []agent.Text) (texts []string, err error) {
				for _, one := range all {
					texts = append(texts, one.Text)
				}
				return texts, nil
			})))
		result, err := batch.Run(t.Context(), p, run, cfg)
		if i == 0 && !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		} else if i == 1 {
			check(t, result, err, 3)
		}
	}
	if len(b.Batches) != 1 {
		t.Errorf("%d batches", len(b.Batches))
	}
}

// No error shows a key, though a server repeats it.
func TestNoKeyIsShown(t *testing.T) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	b.Met = func(w http.ResponseWriter, r *http.Request, _ int, _ bool) bool {
		http.Error(w, "wrong key: "+r.Header.Get("X-Api-Key"), http.StatusUnauthorized)
		return true
	}
	run, cfg := config(j, "r")
	model := anthropic.New(anthropic.Config{URL: b.URL, Key: "sk-secret-31415926", Model: "m", MaxTokens: 5})
	_, err := batch.Run(t.Context(), asking(1, model), run, cfg)
	if err == nil || !strings.Contains(err.Error(), "wrong key") || strings.Contains(err.Error(), "31415926") {
		t.Error(err)
	}
}

// What expired is asked again; what failed by itself fails as it would have directly.
func TestFates(t *testing.T) {
	for protocol := range models("http://127.0.0.1:1") {
		t.Run(protocol, func(t *testing.T) {
			b, j := batchtest.New(t, 0), memdb.New(t)
			b.Fate = func(body string, round int) string {
				switch n := batchtest.Number(body); {
				case n == "3":
					return "errored"
				case round == 0 && n > "5":
					return "expired"
				}
				return ""
			}
			run, cfg := config(j, "r")
			result, err := batch.Run(t.Context(), asking(10, models(b.URL)[protocol]), run, cfg)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := report.Of(result.Node)
			if want := slices.Delete(wanted(10), 3, 4); err != nil || !slices.Equal(texts, want) {
				t.Errorf("got %v, %v", texts, err)
			}
			if len(result.Lost) != 1 || !strings.Contains(result.Lost[0].Failure.JSON(), "too bad") {
				t.Errorf("lost %+v", result.Lost)
			}
			if len(b.Batches) != 2 || len(b.Batches[1].Keys) != 4 {
				t.Errorf("%d batches", len(b.Batches))
			}
		})
	}
}

// A process that does not wait leaves the run to another one.
func TestNoWait(t *testing.T) {
	b, j := batchtest.New(t, 2), memdb.New(t)
	p := asking(5, models(b.URL)["messages"])
	run, cfg := config(j, "r")
	cfg.NoWait = true
	waits := 0
	for {
		result, err := batch.Run(t.Context(), p, run, cfg)
		if !errors.Is(err, kind.Waiting) {
			check(t, result, err, 5)
			break
		}
		info, found := j.Find(t.Context(), "r")
		open, other := j.Questions(t.Context(), "r")
		open = slices.DeleteFunc(open, func(q journal.Question) bool { return !q.Open() })
		if waits++; !strings.Contains(err.Error(), "of 5 done") || info.State != journal.Waiting || len(open) != 1 || open[0].Text != err.Error() || found != nil || other != nil {
			t.Fatal(err, info.State, open, found, other)
		}
	}
	if waits != 2 || len(b.Batches) != 1 || b.Direct != 0 {
		t.Errorf("it waited %d times; %d batches, %d direct requests", waits, len(b.Batches), b.Direct)
	}
}

// Two programs share the batches of a run over PostgreSQL.
func TestPostgres(t *testing.T) {
	b, address := batchtest.New(t, 1), pgtest.Database(t)
	for i := range 2 {
		db, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run, cfg := config(db, "r")
		cfg.NoWait = true
		result, err := batch.Run(t.Context(), asking(3, models(b.URL)["responses"]), run, cfg)
		if i == 0 && !errors.As(err, new(*batch.WaitingError)) {
			t.Error(err)
		} else if i == 1 {
			check(t, result, err, 3)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(b.Batches) != 1 {
		t.Errorf("%d batches", len(b.Batches))
	}
}

func TestMost(t *testing.T) {
	b, j := batchtest.New(t, 0), memdb.New(t)
	run, cfg := config(j, "r")
	cfg.Most = 7
	result, err := batch.Run(t.Context(), asking(30, models(b.URL)["gemini"]), run, cfg)
	check(t, result, err, 30)
	if len(b.Batches) != 5 {
		t.Errorf("%d batches", len(b.Batches))
	}
}

// A run that was removed leaves no answers to the next one of its name.
func TestRemoved(t *testing.T) {
	b, j := batchtest.New(t, 1), memdb.New(t)
	for n := range 2 {
		run, cfg := config(j, "r")
		result, err := batch.Run(t.Context(), asking(3, models(b.URL)["chat"]), run, cfg)
		if check(t, result, err, 3); len(b.Batches) != n+1 {
			t.Errorf("run %d: %d batches", n+1, len(b.Batches))
		}
		if err := j.Remove(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
}

// Several processes may look at the batches of a run, and none makes a second one.
func TestTwoLook(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	p := asking(2, models(b.URL)["chat"])
	run, cfg := config(j, "r")
	ctx, cancel := context.WithCancel(t.Context())
	looked, ended := make(chan bool, 100), make(chan error)
	cfg.Watch = func([]batch.Status) {
		select {
		case looked <- true:
		default:
		}
	}
	go func() {
		_, err := batch.Run(ctx, p, run, cfg)
		ended <- err
	}()
	<-looked
	second := cfg
	second.NoWait, second.Watch = true, nil
	if _, err := batch.Run(t.Context(), p, run, second); !errors.As(err, new(*batch.WaitingError)) || len(b.Batches) != 1 {
		t.Errorf("a second process: %v; %d batches", err, len(b.Batches))
	}
	cancel()
	if err := <-ended; !errors.As(err, new(*batch.WaitingError)) {
		t.Error(err)
	}
}

// A provider that is busy is asked again. One whose answer is lost has made the batch. One that has no batches says so.
func TestProviderFails(t *testing.T) {
	made := func(r *http.Request) bool {
		return r.Method == "POST" && (strings.HasSuffix(r.URL.Path, "/batches") || strings.HasSuffix(r.URL.Path, ":batchGenerateContent"))
	}
	for protocol := range models("http://127.0.0.1:1") {
		t.Run(protocol, func(t *testing.T) {
			b, j := batchtest.New(t, 2), memdb.New(t)
			once := map[bool]bool{}
			b.Met = func(w http.ResponseWriter, r *http.Request, n int, after bool) bool {
				if !made(r) || once[after] {
					return false
				}
				once[after] = true
				if w.Header().Set("Retry-After", "0"); after {
					w.WriteHeader(http.StatusBadGateway) // it is made
				} else {
					w.WriteHeader(http.StatusTooManyRequests)
				}
				return true
			}
			run, cfg := config(j, "r")
			result, err := batch.Run(t.Context(), asking(3, models(b.URL)[protocol]), run, cfg)
			check(t, result, err, 3)
			if len(b.Batches) != 1 {
				t.Errorf("%d batches", len(b.Batches))
			}

			b = batchtest.New(t, 0)
			b.Met = func(w http.ResponseWriter, r *http.Request, _ int, _ bool) bool {
				w.WriteHeader(http.StatusNotFound)
				return true
			}
			run, cfg = config(j, "none")
			_, err = batch.Run(t.Context(), asking(3, models(b.URL)[protocol]), run, cfg)
			if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), b.URL) || strings.Contains(err.Error(), "run it again") {
				t.Error(err)
			}
		})
	}
}

// models asks a server, by the names of the protocols.
func models(url string) map[string]llm.Model {
	return map[string]llm.Model{
		"chat":      openai.New(openai.Config{URL: url, Key: "key", Model: "m"}),
		"responses": openai.New(openai.Config{URL: url, Key: "key", Model: "m", Protocol: openai.Responses}),
		"messages":  anthropic.New(anthropic.Config{URL: url, Key: "key", Model: "m", MaxTokens: 500}),
		"gemini":    gemini.New(gemini.Config{URL: url, Key: "key", Model: "m"}),
	}
}
