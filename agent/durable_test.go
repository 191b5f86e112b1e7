package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/step"
)

// memory is a journal that fails after a given number of records.
type memory struct {
	*sqlite.DB
	mu   sync.Mutex
	left int // records until it dies; negative is never
	log  []string
}

// dies returns a journal with so many records left until it dies.
func dies(t memdb.T, left int) *memory { return &memory{DB: memdb.New(t), left: left} }

var errDied = errors.New("the machine died")

func (m *memory) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return m.DB.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		if m.dead() {
			return step.Record{}, errDied
		}
		rec, err := work(ctx)
		if err != nil {
			return rec, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.left == 0 {
			return rec, errDied // done, but never acknowledged
		}
		m.left--
		m.log = append(m.log, key.Kind+" "+key.Path)
		return rec, nil
	})
}

func (m *memory) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left == 0
}

// TestResume kills a run after every record in turn, and resumes it: the result equals an undisturbed run's, and no recorded step
// runs again.
func TestResume(t *testing.T) {
	ran := map[string]int{}
	meta := tool("count", func(text string) (agent.Result, error) {
		ran[text]++
		return agent.Result{Text: "counted " + text, Meta: map[string]any{"n": 9007199254740993, "raw": text}}, nil
	})
	pipeline := func(m llm.Model) stone.Ashlar {
		votes := 0
		return stone.Seq("all",
			agent.New("talk", note, m, agent.Config{
				System: agent.Say("be brief"), User: agent.Say("begin"), Use: []agent.Middleware{agent.Use(meta)},
				Adversary: strict(&votes, "good"),
			}),
			stone.Func("after", note, check, func(_ context.Context, n agent.Text) (passed, error) { return passed{n.Text}, nil }),
		)
	}
	script := func() *canned {
		cut := but(calls("count", `{"text":"a","more":1.0}`, "count", ``), func(r *llm.Reply) {
			r.ToolCalls[1].Input, r.ToolCalls[1].InputText = nil, `{"te`
			r.Metadata = map[string]json.RawMessage{"canned/state": json.RawMessage(`{"b":1,"a":2}`)}
		})
		return model(cut, calls("count", `{"text":"b"}`, "count", `{"text":"c"}`), says("bad"), says("good"))
	}
	whole := dies(t, -1)
	want, err := stone.Run(t.Context(), pipeline(script()), stone.Config{Recorder: whole, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{"value all/talk/opening", "step all/talk/turn-1", "step all/talk/tool-1-1", "step all/talk/tool-1-2", "step all/talk/turn-2", "step all/talk/tool-2-1", "step all/talk/tool-2-2",
		"step all/talk/turn-3", "leaf all/talk/judge", "step all/talk/turn-4", "leaf all/talk/judge@2", "leaf all/talk", "leaf all/after"}
	if got := fmt.Sprint(whole.log); got != fmt.Sprint(addresses) {
		t.Fatalf("records %v, want %v", got, addresses)
	}
	plain, err := stone.Run(t.Context(), pipeline(script()), stone.Config{RunID: "r"})
	if err != nil || plain.Node.ID() != want.Node.ID() {
		t.Fatalf("a run without a recorder gives another result: %v", err)
	}
	for died := range addresses {
		clear(ran)
		mem := dies(t, died)
		m := script()
		if _, err := stone.Run(t.Context(), pipeline(m), stone.Config{Recorder: mem, RunID: "r"}); !errors.Is(err, errDied) {
			t.Fatalf("died after %d: %v", died, err)
		}
		recorded := len(mem.log)
		// Only the step that was running at the crash runs again.
		mem.left = -1
		clear(ran)
		rest := script()
		turns := 0
		for _, address := range mem.log[:recorded] {
			var turn int
			if _, err := fmt.Sscanf(address, "step all/talk/turn-%d", &turn); err == nil {
				turns++
			}
		}
		rest.answers = rest.answers[turns:]
		got, err := stone.Run(t.Context(), pipeline(rest), stone.Config{Recorder: mem, RunID: "r"})
		if err != nil || got.Node.ID() != want.Node.ID() {
			t.Fatalf("resumed after %d records: %v, want the same node", died, err)
		}
		if rest.calls() != 4-turns {
			t.Errorf("resumed after %d records: the model was asked %d times, want %d", died, rest.calls(), 4-turns)
		}
		for _, address := range mem.log[:recorded] {
			for a, text := range map[string]string{"step all/talk/tool-1-1": "a", "step all/talk/tool-2-1": "b", "step all/talk/tool-2-2": "c"} {
				if address == a && ran[text] > 0 {
					t.Errorf("resumed after %d records: the tool ran again for %q", died, text)
				}
			}
		}
	}
}

// TestOtherPrompt checks that a conversation continues with its first prompt, and that the result says so.
func TestOtherPrompt(t *testing.T) {
	mem := dies(t, 3) // the opening, a turn and its call
	talk := func(prompt string, m llm.Model) stone.Ashlar {
		return agent.New("talk", note, m, agent.Config{User: agent.Say(prompt), Use: []agent.Middleware{agent.Use(echo())}})
	}
	if _, err := run(t, talk("begin", model(calls("echo", `{"text":"a"}`))), stone.Config{Recorder: mem, RunID: "r"}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	mem.left = -1
	rest := model(says("x"))
	res, err := run(t, talk("start", rest), stone.Config{Recorder: mem, RunID: "r"})
	if err != nil || rest.calls() != 1 {
		t.Fatalf("the model was asked %d times, %v; want the second turn alone", rest.calls(), err)
	}
	want := "user: begin\ncall: echo {\"text\":\"a\"}\ntool: echo a\nassistant: x\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
	if len(res.Notices) != 1 || res.Notices[0].Code != terms.PromptChanged || !strings.Contains(res.Notices[0].Text, "- user: begin\n+ user: start") {
		t.Errorf("the result has the notices %+v, want the difference of the prompts", res.Notices)
	}
}

// TestPrint checks that a changed agent runs again, and an unchanged one does not.
func TestPrint(t *testing.T) {
	type cfg = agent.Config
	ring := agent.Middleware{Name: "ring", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		return next(ctx, c)
	}}
	j := memdb.New(t)
	for i, tt := range []struct {
		cfg  cfg
		asks int
	}{
		{cfg{User: agent.Say("a")}, 1},
		{cfg{User: agent.Say("a")}, 0},
		{cfg{User: agent.Say("b")}, 1},
		{cfg{User: agent.Say("b"), System: agent.Say("c")}, 1},
		{cfg{User: agent.Say("a"), Model: "m"}, 1},
		{cfg{User: agent.Say("a"), MaxTokens: 7}, 1},
		{cfg{User: agent.Say("a"), Use: []agent.Middleware{agent.Use(echo())}}, 1},
		{cfg{User: agent.Say("a"), Use: []agent.Middleware{ring}}, 1},
		{cfg{User: agent.Say("a"), Use: []agent.Middleware{ring}}, 0},
	} {
		m := model(says("x"))
		tt.cfg.Options = []stone.LeafOption{stone.Reusable()}
		if _, err := run(t, agent.New("talk", note, m, tt.cfg), stone.Config{Recorder: j, RunID: fmt.Sprint(i)}); err != nil || m.calls() != tt.asks {
			t.Errorf("%d: the model was asked %d times, %v; want %d", i, m.calls(), err, tt.asks)
		}
	}
}

// TestRetry checks that the options of the leaf are the agent's: the second attempt continues where the first one failed, and pays
// for no turn and runs no tool twice, with a recorder and without.
func TestRetry(t *testing.T) {
	mem := dies(t, -1)
	m := model(calls("echo", `{"text":"a"}`), &llm.HTTPError{Status: 503}, calls("echo", `{"text":"b"}`), says("done"))
	a := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(echo())},
		Options: []stone.LeafOption{stone.Retry{Attempts: 2, Kinds: []kind.Kind{reasons.ModelFailed}}}})
	res, err := run(t, a, stone.Config{Recorder: mem, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	want := "user: go\ncall: echo {\"text\":\"a\"}\ntool: echo a\ncall: echo {\"text\":\"b\"}\ntool: echo b\nassistant: done\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
	addresses := "[value talk/opening step talk/turn-1 step talk/tool-1-1 step talk/turn-2 step talk~2/turn-2 step talk~2/tool-2-1 step talk~2/turn-3 leaf talk]"
	if got := fmt.Sprint(mem.log); got != addresses {
		t.Errorf("records %s, want %s", got, addresses)
	}
}

// TestParallel checks that calls run concurrently only if their tools allow it.
func TestParallel(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(3)
	together := tool("together", func(text string) (agent.Result, error) {
		meet.Done()
		meet.Wait() // passes only when three of them are running
		return agent.Result{Text: text}, nil
	})
	together.Parallel = true
	var order []string
	alone := tool("alone", func(text string) (agent.Result, error) {
		order = append(order, text) // the race detector watches
		return agent.Result{Text: text}, nil
	})
	fragile := tool("fragile", func(string) (agent.Result, error) { panic("boom") })
	fragile.Parallel = true
	m := model(calls("alone", `{"text":"1"}`, "together", `{"text":"2"}`, "together", `{"text":"3"}`, "fragile", `{"text":""}`, "together", `{"text":"4"}`,
		"alone", `{"text":"5"}`, "alone", `{"text":"6"}`), says("done"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(together), agent.Use(alone), agent.Use(fragile)}}),
		stone.Config{Recorder: dies(t, -1)})
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, m := range conversation(t, res) {
		if m.Role == llm.RoleTool {
			results = append(results, m.CallID+" "+m.Text())
		}
	}
	want := `[call_0 1 call_1 2 call_2 3 call_3 the tool "fragile" panicked: boom call_4 4 call_5 5 call_6 6]`
	if got := fmt.Sprint(results); got != want || fmt.Sprint(order) != "[1 5 6]" {
		t.Errorf("results %s, order %v, want %s", got, order, want)
	}
}

// TestManyParallel checks that the concurrent calls of a turn are bounded, and that a
// tool which ends its goroutine is a failure, not a hang.
func TestManyParallel(t *testing.T) {
	var now, most atomic.Int32
	busy := tool("busy", func(text string) (agent.Result, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return agent.Result{Text: text}, nil
	})
	busy.Parallel = true
	gone := tool("gone", func(string) (agent.Result, error) { runtime.Goexit(); return agent.Result{}, nil })
	gone.Parallel = true
	many := calls()
	for i := range 100 {
		many.ToolCalls = append(many.ToolCalls, llm.ToolCall{ID: fmt.Sprint(i), Name: "busy", Input: json.RawMessage(`{"text":"x"}`)})
	}
	talk := func(m llm.Model) stone.Ashlar {
		return agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(busy), agent.Use(gone)}})
	}
	res, err := run(t, talk(model(many, says("done"))), stone.Config{})
	if err != nil || len(conversation(t, res)) != 103 || most.Load() > 16 {
		t.Errorf("%v, %d at the same time, want at most 16", err, most.Load())
	}
	res, err = run(t, talk(model(calls("busy", `{"text":"x"}`, "gone", `{"text":"x"}`))), stone.Config{})
	if got := outcome(t, res, err); got != string(kind.Panic) {
		t.Errorf("got %s (%v), want %s", got, err, kind.Panic)
	}
}

// TestCancel checks that a tool that ends because the run is canceled does not count
// as failed.
func TestCancel(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stuck agent.Tool
		stuck.Name, stuck.Parallel = "stuck", parallel
		stuck.Run = func(ctx context.Context, _ json.RawMessage) (agent.Result, error) {
			cancel()
			<-ctx.Done()
			return agent.Result{}, fmt.Errorf("reading: %w", ctx.Err())
		}
		m := model(calls("stuck", `{}`, "stuck", `{}`), says("never"))
		res, err := stone.Run(ctx, agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(stuck)}}), stone.Config{})
		if got := outcome(t, res, err); got != string(kind.Canceled) || m.calls() != 1 {
			t.Errorf("got %s after %d turns (%v), want %s after 1", got, m.calls(), err, kind.Canceled)
		}
	}
}

// TestWaiting checks that a tool whose question waits for a person does not count as
// failed, and is called again when the run is resumed.
func TestWaiting(t *testing.T) {
	answer, asked := "", 0
	ask := tool("ask", func(text string) (agent.Result, error) {
		if asked++; answer == "" {
			return agent.Result{}, stone.Fail(kind.Waiting, "%w", kind.Waiting)
		}
		return agent.Result{Text: answer}, nil
	})
	m := model(calls("echo", `{"text":"a"}`, "ask", `{"text":"which?"}`), says("done"))
	mem := dies(t, -1)
	talk := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(echo()), agent.Use(ask)}})
	res, err := run(t, talk, stone.Config{Recorder: mem, RunID: "r"})
	if got := outcome(t, res, err); got != string(kind.Waiting) || !errors.Is(err, kind.Waiting) {
		t.Fatalf("got %s (%v), want %s", got, err, kind.Waiting)
	}
	answer = "this one"
	res, err = run(t, talk, stone.Config{Recorder: mem, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	want := "user: go\ncall: echo {\"text\":\"a\"}\ncall: ask {\"text\":\"which?\"}\ntool: echo a\ntool: this one\nassistant: done\n"
	if got := transcript(conversation(t, res)); got != want || asked != 2 || m.calls() != 2 {
		t.Errorf("asked %d times, %d turns, conversation\n%s", asked, m.calls(), got)
	}
}

// TestUndeclared checks that an agent whose prompt reads an undeclared type costs
// nothing.
func TestUndeclared(t *testing.T) {
	start, err := ticket.Append(dag.DAG{}, ticketDoc{Title: "crash"})
	if err != nil {
		t.Fatal(err)
	}
	m := model(says("x"))
	a := agent.New("talk", note, m, agent.Config{User: dag.ReaderFunc(func(d dag.DAG) (string, error) {
		doc, _ := ticket.From(d) // even if the error is dropped
		return "about " + doc.Title, nil
	})})
	res, err := run(t, a, stone.Config{Input: start})
	if got := outcome(t, res, err); got != string(kind.UndeclaredQuery) || m.calls() != 0 {
		t.Errorf("got %s after %d turns, want %s after none", got, m.calls(), kind.UndeclaredQuery)
	}
}
