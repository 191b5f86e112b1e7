package serve_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
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

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
)

var (
	spoken  = dag.NewType[string]("message")
	replied = dag.NewType[agent.Text]("answer")
	theirs  = dag.NewType[[]llm.Tool]("client-tools")
)

// A quarry publishes pipelines for front ends.
type quarry struct {
	*servetest.Server
	bought, asked atomic.Int32
	gate          gate
}

// A gate lets models continue while it is open.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) wait() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
	return g.open
}

func (g *gate) set(open bool) {
	c := g.wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-c:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(c)
		}
	}
}

// Stream implements llm.Model: the answer stops after its first word until the gate opens.
func (q *quarry) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	q.asked.Add(1)
	return func(yield func(llm.Delta, error) bool) {
		if !yield(llm.Delta{Kind: llm.Text, Text: "One "}, nil) {
			return
		}
		select {
		case <-q.gate.wait():
		case <-ctx.Done():
			yield(llm.Delta{}, ctx.Err())
			return
		}
		for d, err := range script.New(script.Text("two.")).Stream(ctx, req) {
			if d.Kind == llm.Done {
				d.Reply.Text = "One two."
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// pipelines are what the quarry publishes.
func (q *quarry) pipelines() []serve.Pipeline {
	type order struct {
		Stone string `json:"stone"`
	}
	look := tool.Func("look", "Looks.", func(_ context.Context, o order) (string, error) { return o.Stone + " is grey", nil }, tool.Effects())
	buy := tool.Confirm(tool.Func("buy", "Buys.", func(_ context.Context, o order) (string, error) {
		return fmt.Sprint("bought ", q.bought.Add(1)), nil
	}, tool.Effects("net")), tool.Ask)
	mason := script.Func(func(_ int, req *llm.Request) script.Answer {
		q.asked.Add(1)
		last := req.Messages[len(req.Messages)-1]
		switch text := last.Text(); {
		case last.Role == llm.RoleTool:
			return script.Text("So " + text + ".")
		case text == "look" || text == "buy":
			a := script.Call(text, `{"stone": "slate"}`) // longer than its record
			a.Reply.Text, a.Reply.Reasoning = "I "+text+". ", "Hm."
			return a
		default:
			return script.Text(fmt.Sprintf("%d: %s", len(req.Messages), text))
		}
	})
	talks := func(name string, m llm.Model, more agent.Config) stone.Ashlar {
		more.User, more.Conversation = spoken, agent.ConversationOf(replied)
		return agent.New(name, replied, m, more)
	}
	polite := script.Func(func(_ int, req *llm.Request) script.Answer {
		if len(req.Messages) == 1 {
			return script.Text("Bad.")
		}
		return script.Text("Good.")
	})
	judge := stone.Func("judge", replied, said, func(ctx context.Context, a agent.Text) (agent.Text, error) {
		select {
		case <-q.gate.wait():
		case <-ctx.Done():
		}
		if a.Text == "Bad." {
			return a, stone.Fail("rude", "be polite")
		}
		return a, nil
	})
	type titled struct {
		Title string `json:"title"`
	}
	title := dag.NewType[titled]("title")
	painter := script.Func(func(_ int, req *llm.Request) script.Answer {
		q.asked.Add(1)
		last := req.Messages[len(req.Messages)-1]
		var results []string
		for _, m := range slices.Backward(req.Messages) {
			if m.Role != llm.RoleTool {
				break
			}
			results = append([]string{m.Text()}, results...)
		}
		switch {
		case last.Role == llm.RoleTool:
			return script.Text("So " + strings.Join(results, " and ") + ".")
		case last.Text() == "tools":
			var names []string
			for _, t := range req.Tools {
				names = append(names, t.Name+" "+t.Description)
			}
			return script.Text(strings.Join(names, ", "))
		}
		name, between, _ := strings.Cut(last.Text(), " around ")
		a := script.Call(name, `{"stone":"slate"}`)
		one := a.Reply.ToolCalls[0]
		if between != "" {
			other := one
			other.ID, other.Name = "between", between
			a.Reply.ToolCalls = append(a.Reply.ToolCalls, other)
		}
		one.ID, one.Input = "second", []byte(`{"stone":"chalk"}`)
		a.Reply.ToolCalls = append(a.Reply.ToolCalls, one)
		return a
	})
	return []serve.Pipeline{
		{Ashlar: talks("painter", painter, agent.Config{Use: []agent.Middleware{tool.Client[order]("scroll", "Scrolls to a stone."), look, buy, tool.ClientTools(theirs)}})},
		{Ashlar: talks("mason", mason, agent.Config{Use: []agent.Middleware{look, buy}})},
		{Ashlar: talks("polite", polite, agent.Config{Adversary: judge})},
		{Ashlar: talks("slow", q, agent.Config{})},
		{Ashlar: stone.Func("typed", spoken, title, func(_ context.Context, text string) (titled, error) { return titled{text}, nil })},
		{Ashlar: stone.Func("broken", spoken, page, func(context.Context, string) (string, error) { return "", stone.Fail("broken", "no slate") })},
		{Ashlar: stone.Seq("page", stone.Ask("approve", spoken, approval, func(text string) string { return "Publish " + text + "?" }, stone.Choices("yes", "no")),
			stone.Func2("publish", spoken, approval, page, func(_ context.Context, text string, a stone.Answer) (string, error) {
				return a.Response + ": " + text, nil
			}))},
	}
}

// openQuarry serves the pipelines, and lets clients control them.
func openQuarry(t *testing.T, cfg serve.Config) *quarry {
	q := &quarry{}
	cfg.Pipelines = q.pipelines()
	q.Server = serveAll(t, cfg, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/control/open", "/control/close":
				q.gate.set(r.URL.Path == "/control/open")
			case "/control/bought":
				fmt.Fprint(w, q.bought.Load())
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	t.Cleanup(func() { q.gate.set(true) })
	return q
}

// The clients of both protocols work as their users expect, also in the second turn, after a lost
// connection, and with questions.
func TestFrontends(t *testing.T) {
	for _, name := range []string{"ai", "ai7"} {
		peer.Held(t, name, "turns", "tools", "approvals", "questions", "client tools", "regenerate", "edit", "streams that break off", "errors", "data")
	}
	for _, name := range []string{"@ag-ui/client", "agui0"} {
		peer.Held(t, name, "turns", "tools", "approvals", "questions", "client tools", "state", "streams that break off", "errors", "cancelling")
	}
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	program, err := os.Open("testdata/frontends.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir = filepath.Dir(filepath.Dir(peer.Module(t, "ai")))
	cmd.Stdin = program
	cmd.Env = append(os.Environ(), "STONE_URL="+q.URL)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.Contains(stderr.String(), "AG-UI") {
		t.Errorf("%v: %s", err, stderr.String())
	}
	golden(t, "testdata/frontends.txt", string(out))
}

// golden compares a text with a file, which -update writes.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A call of a client's tool waits in the journal. Another server takes the results of both calls in this turn at once, in a
// second request too, and the model is not asked again.
func TestClientTools(t *testing.T) {
	db := memdb.New(t)
	post := func(q *quarry, message string) string {
		t.Helper()
		body := fmt.Sprintf(`{"threadId": "c", "runId": "r", "tools": [{"name": "paint", "description": "Paints.", "parameters": {"type": "object"}}, {"name": "look", "description": "Not that of the agent."}], "messages": [%s]}`, message)
		res, err := http.Post(q.URL+"/v1/agui/painter", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	has := func(got string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	}
	user := `{"id": "1", "role": "user", "content": "paint"}`
	first := openQuarry(t, serve.Config{Journal: db})
	has(post(first, user), `"toolCallName":"paint"`, `"outcome":{"type":"success"}`)
	first.Close()

	second := openQuarry(t, serve.Config{Journal: db})
	results := user + `, {"id": "t1", "role": "tool", "toolCallId": "c-turn-1~painter/tool-1-1", "content": "red"}, {"id": "t2", "role": "tool", "toolCallId": "c-turn-1~painter/tool-1-2", "content": "no"}`
	for range 2 {
		has(post(second, results), "So red and no.", `"outcome":{"type":"success"}`)
	}
	if n := second.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	has(post(second, strings.Replace(results, "red", "blue", 1)), "answered")
	around := `{"id": "7", "role": "user", "content": "paint around look"}`
	has(post(second, around), `"toolCallId":"c-turn-2~painter/tool-1-1"`, `"toolCallId":"c-turn-2~painter/tool-1-3"`)
	around += strings.ReplaceAll(strings.TrimPrefix(results, user), "turn-1", "turn-2")
	has(post(second, strings.Replace(around, "tool-1-2", "tool-1-3", 1)), "So red and ", " and no.", `"outcome":{"type":"success"}`)
	has(post(second, results+`, {"id": "3", "role": "user", "content": "tools"}`), "scroll Scrolls to a stone., look Looks., buy Buys., paint Paints.")
	has(post(second, `{"id": "4", "role": "user", "content": "paint"}`), `"toolCallName":"paint"`)
	has(post(second, `{"id": "5", "role": "user", "content": "never mind"}`), "So The call was not run. The user wrote instead: never mind and The call was not run.")
	// A message that had answered only one of the calls when its server ended answers the other one too.
	has(post(second, `{"id": "8", "role": "user", "content": "paint"}`), `"toolCallName":"paint"`)
	half := ask.Answer{Response: "The call was not run. The user wrote instead: stop", By: turn.By("a chat client", "9")}
	if err := journal.Answer(t.Context(), db, "c-turn-5", "painter/tool-1-1", half); err != nil {
		t.Fatal(err)
	}
	has(post(second, `{"id": "9", "role": "user", "content": "stop"}`), "So The call was not run. The user wrote instead: stop and The call was not run.")
}

// Who listens to a run that ends while its wait does, and tells slowly, gets the result.
func TestListenerGetsTheResult(t *testing.T) {
	name, greeting := dag.NewType[string]("name"), dag.NewType[string]("greeting")
	gate := make(chan struct{})
	slow := stone.Func("slow", name, greeting, func(_ context.Context, n string) (string, error) { <-gate; return n, nil })
	j := memdb.New(t)
	s, err := serve.New(serve.Config{Journal: j, Pipelines: []serve.Pipeline{{Name: "slow", Ashlar: slow}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 { // the end of the wait and of the run are seen in any order
		id := fmt.Sprint("r", i)
		do := func(method, path, body string, tell func([]turn.Part)) string {
			out := httptest.NewRecorder()
			r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body)).WithContext(turn.Listen(t.Context(), tell))
			r.Header.Set("Content-Type", "application/json")
			s.ServeHTTP(out, r)
			return out.Body.String()
		}
		do("PUT", "/v1/runs/"+id, `{"pipeline":"slow","input":"x"}`, func([]turn.Part) {})
		told := sync.OnceFunc(func() {
			gate <- struct{}{}
			for info, err := j.Find(t.Context(), id); err != nil || info.State != journal.Done; info, err = j.Find(t.Context(), id) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
		})
		got := do("GET", "/v1/runs/"+id+"/result?wait=20ms", "", func([]turn.Part) { told() })
		told() // if the wait ended before anything was told
		if strings.Contains(got, `"state":"done"`) != strings.Contains(got, `"result"`) {
			t.Fatalf("the run without its result: %s", got)
		}
	}
}
