package stone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

var (
	reply = dag.NewType[stone.Answer]("answer")
	form  = dag.NewType[formDoc]("form")
)

type formDoc struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

// frontend answers questions with a function.
type frontend func(context.Context, stone.Question) (string, error)

func (f frontend) Ask(ctx context.Context, q stone.Question) (string, error) { return f(ctx, q) }

// canned gives one answer after the other.
func canned(answers ...string) frontend {
	var mu sync.Mutex
	return func(_ context.Context, q stone.Question) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return "", fmt.Errorf("no answer left for %+v", q)
		}
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
}

func text(s string) func(dag.DAG) (string, error) {
	return func(dag.DAG) (string, error) { return s, nil }
}

func TestAsk(t *testing.T) {
	free := stone.Ask("free", reply, text("Well?"))
	choice := stone.Ask("choice", reply, text("Ship it?"), stone.Choices("yes", "no"))
	filled := stone.AskFor("filled", form, text("Who?"))
	tests := []struct {
		name     string
		p        stone.Ashlar
		frontend stone.Frontend
		want     string // content of the node
		kind     string // of the failure
	}{
		{"free text", free, canned("so so"), `{"response":"so so"}`, ""},
		{"cancelled", free, canned(""), `{"response":""}`, ""},
		{"choice", choice, canned("no"), `{"response":"no"}`, ""},
		{"choice, at last", choice, canned("maybe", "Yes", "yes"), `{"response":"yes"}`, ""},
		{"choice, cancelled", choice, canned("maybe", ""), `{"response":""}`, ""},
		{"choice, never", choice, canned(strings.Split(strings.Repeat("maybe,", 10), ",")...), "", kind.Unanswered},
		{"form", filled, canned(`{"name":"Zoë","age":7}`), `{"age":7,"name":"Zoë"}`, ""},
		{"form, at last", filled, canned(`nonsense`, `{"name":"Zoë"}`, `{"name":"Zoë","age":"7"}`, `{"name":"Zoë","age":7}`), `{"age":7,"name":"Zoë"}`, ""},
		{"form, cancelled", filled, canned(""), "", kind.Unanswered},
		{"nobody there", free, nil, "", kind.NoFrontend},
		{"frontend fails", free, canned(), "", kind.Error},
		{"frontend panics", free, frontend(func(context.Context, stone.Question) (string, error) { panic("no") }), "", kind.Panic},
		{"text fails", stone.Ask("free", reply, func(dag.DAG) (string, error) { return "", stone.Fail("own", "no") }), canned("x"), "", "own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := stone.Run(t.Context(), tt.p, stone.Config{Frontend: tt.frontend})
			if tt.kind != "" {
				wantKind(t, err, tt.kind)
			} else if err != nil || result.Node.JSON() != tt.want {
				t.Errorf("%v, %v; want %s", result.Node.JSON(), err, tt.want)
			}
		})
	}
}

func TestQuestionContents(t *testing.T) {
	var got []stone.Question
	f := frontend(func(_ context.Context, q stone.Question) (string, error) {
		got = append(got, q)
		return []string{"b", "a"}[len(got)-1], nil
	})
	p := stone.Seq("s", say("a", "x"), stone.Ask("ask", reply, func(d dag.DAG) (string, error) {
		w, err := word.Nearest(d)
		return "About " + w + "?", err
	}, stone.Queries(word), stone.Choices("a", "c")))
	if _, err := stone.Run(t.Context(), p, stone.Config{Frontend: f, RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	first := stone.Question{Name: "ask", Run: "r1", Path: "s/ask", Text: "About x?", Choices: []string{"a", "c"}}
	second := first
	second.Problem = `"b" is no answer: want one of ["a" "c"]`
	if diff := cmp.Diff([]stone.Question{first, second}, got); diff != "" {
		t.Error(diff)
	}
	listed := stone.Questions(stone.Seq("s", p, stone.AskFor("more", form, text("?")), p))
	if len(listed) != 2 || listed[0].Name != "ask" || listed[0].Text != "" || listed[1].Schema == nil {
		t.Errorf("Questions = %+v, want both, each once, the second with a schema", listed)
	}
}

// several makes a pipeline in which n lanes ask at the same time.
func several(n int) stone.Ashlar {
	return stone.Seq("s", numbers(n), stone.Map("m", each(),
		stone.Ask("ask", reply, func(d dag.DAG) (string, error) {
			i, err := number.Nearest(d)
			return fmt.Sprint(i), err
		}, stone.Queries(number))),
		stone.Reduce(stone.FuncAll("join", reply, word, func(_ context.Context, all []stone.Answer) (string, error) {
			var parts []string
			for _, a := range all {
				parts = append(parts, a.Response)
			}
			return strings.Join(parts, ","), nil
		})))
}

func TestChannel(t *testing.T) {
	t.Run("several questions at once, answered backwards", func(t *testing.T) {
		questions := stone.NewChannel(0)
		go func() {
			var open []stone.Asked
			for range 5 {
				open = append(open, <-questions)
			}
			for i := range open {
				q := open[len(open)-1-i]
				if q.Text == "3" {
					q.Cancel()
				}
				q.Answer("to " + q.Text)
				q.Answer("too late")
			}
		}()
		result, err := stone.Run(t.Context(), several(5), stone.Config{Frontend: questions})
		if err != nil || result.Node.Text() != "to 0,to 1,to 2,,to 4" {
			t.Errorf("%q, %v", result.Node.Text(), err)
		}
	})
	t.Run("cancelled while questions wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			questions := stone.NewChannel(1)
			go func() {
				synctest.Wait()
				cancel()
			}()
			_, err := stone.Run(ctx, several(3), stone.Config{Frontend: questions})
			wantKind(t, err, kind.Canceled)
			asked := <-questions
			<-asked.Done()
			asked.Answer("to nobody")
		})
	})
}

// A frontend that passes questions on and lets the process end: what can go on
// goes on, then the run fails, and goes on when it is run again.
func TestWaiting(t *testing.T) {
	var memory journal.Memory
	known, asked := map[string]string{}, map[string]int{}
	f := frontend(func(_ context.Context, q stone.Question) (string, error) {
		if a, ok := known[q.Name]; ok {
			return a, nil
		}
		asked[q.Name]++
		return "", fmt.Errorf("mailed: %w", stone.ErrWaiting)
	})
	p := stone.Rescue("r", stone.Seq("s", stone.Parallel("p", []stone.Ashlar{
		stone.Ask("first", reply, text("Well?"), stone.Retry(stone.RetryPolicy{Attempts: 3})),
		stone.Ask("second", reply, text("And?")), say("other", "y"),
	}, stone.Lanes(1)), last), stone.Func0("heal", word, func(context.Context) (string, error) {
		t.Error("a question that waits was rescued")
		return "", nil
	}))
	cfg := stone.Config{RunID: "r", Recorder: &memory, Frontend: f}
	for i, tt := range []struct {
		known         string
		waits         bool
		first, second int // how often they were asked so far
	}{{"", true, 1, 1}, {"first", true, 1, 2}, {"", true, 1, 3}, {"second", false, 1, 3}, {"", false, 1, 3}} {
		known[tt.known] = "yes"
		result, err := stone.Run(t.Context(), p, cfg)
		if tt.waits {
			if wantKind(t, err, kind.Waiting); !errors.Is(err, stone.ErrWaiting) {
				t.Errorf("run %d: %v", i, err)
			}
		} else if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if _, err := result.DAG.All("word"); err != nil || asked["first"] != tt.first || asked["second"] != tt.second {
			t.Errorf("run %d: asked %v, %v; want %d and %d times", i, asked, err, tt.first, tt.second)
		}
		clear(known) // what was answered is recorded
	}
}

// hub is a Frontend over HTTP: questions are listed, answers come as callbacks.
type hub struct {
	stone.Channel
	mu   sync.Mutex
	open map[string]stone.Asked // by run and path
}

func (h *hub) collect(ctx context.Context) {
	for {
		select {
		case q := <-h.Channel:
			h.mu.Lock()
			h.open[q.Run+"/"+q.Path] = q
			h.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := strings.TrimPrefix(r.URL.Path, "/")
	if r.Method == http.MethodGet {
		texts := map[string]string{}
		for id, q := range h.open {
			texts[id] = q.Text
		}
		_ = json.NewEncoder(w).Encode(texts)
		return
	}
	if q, ok := h.open[id]; ok {
		delete(h.open, id)
		q.Answer(r.FormValue("answer"))
	}
}

func TestHTTPCallback(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &hub{Channel: stone.NewChannel(0), open: map[string]stone.Asked{}}
	server := httptest.NewServer(h)
	var group sync.WaitGroup
	defer group.Wait()
	defer server.Close()
	defer cancel()
	group.Go(func() { h.collect(ctx) })
	group.Go(func() {
		for ctx.Err() == nil {
			response, err := server.Client().Get(server.URL)
			if err != nil {
				return
			}
			var open map[string]string
			err = json.NewDecoder(response.Body).Decode(&open)
			response.Body.Close()
			for id, text := range open {
				callback, err := server.Client().Post(server.URL+"/"+strings.ReplaceAll(id, "%", "%25")+"?answer=to+"+text, "", nil)
				if err == nil {
					callback.Body.Close()
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	results := make([]string, 2)
	var runs sync.WaitGroup
	for i := range results {
		runs.Go(func() {
			result, err := stone.Run(t.Context(), several(3), stone.Config{RunID: fmt.Sprint("run", i), Frontend: h})
			if err != nil {
				t.Error(err)
				return
			}
			results[i] = result.Node.Text()
		})
	}
	runs.Wait()
	if results[0] != "to 0,to 1,to 2" || results[1] != results[0] {
		t.Errorf("two runs got %q", results)
	}
}
